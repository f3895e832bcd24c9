# Comments of the public headers as Doxygen takes them: what stands before a
# declaration, and what stands behind a member, a value or a constant.
1d
s|^/\*$|/**|
s|^/\* |/** |
/^\(\t\|#define \).*[^ \t].*\/\* /s|/\* |/**< |
s|^\(/\*\*<\)|/**|
