# SPDX-License-Identifier: MIT
"""What the constructor can be asked for, seen from outside: its signature."""

import inspect

import pytest

import tsock
from tsock import keywords


def test_a_misspelt_keyword_is_answered_with_the_right_one(place):
    for wrong, right in (
        ("batchsize", "batch_size"),
        ("pin_memroy", "pin_memory"),
        ("field", "fields"),
        ("memory_fromat", "memory_format"),
    ):
        with pytest.raises(TypeError) as e:
            tsock.DataLoader("toy", **{wrong: 1})
        assert str(e.value) == (
            "tsock.DataLoader has no argument %r; did you mean %r?"
            % (wrong, right)
        )
    with pytest.raises(TypeError, match="no argument 'xyzzy'$"):
        tsock.DataLoader("toy", xyzzy=1)


@pytest.mark.parametrize("key", sorted(keywords.ELSEWHERE))
def test_torchs_own_keywords_say_where_they_have_gone(place, key):
    with pytest.raises(TypeError) as e:
        tsock.DataLoader("toy", **{key: None})
    assert str(e.value).endswith(": " + keywords.ELSEWHERE[key])


def test_the_signature_is_what_it_looks_like():
    parameters = inspect.signature(tsock.DataLoader).parameters
    assert list(parameters)[:2] == ["name", "batch_size"]
    assert parameters["drop_last"].default is False
    assert parameters["dtype"].kind is inspect.Parameter.KEYWORD_ONLY
    assert not any(
        p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()
    )
    assert not set(parameters) & set(keywords.ELSEWHERE)


def test_what_is_missing_or_too_much_is_pythons_own_error(place):
    with pytest.raises(TypeError, match="name"):
        tsock.DataLoader()
    with pytest.raises(TypeError, match="positional"):
        tsock.DataLoader("toy", 1, 2)
    with pytest.raises(TypeError, match="multiple values"):
        tsock.DataLoader("toy", 1, batch_size=2)


@pytest.mark.parametrize(
    "key, text",
    [
        ("num_worker", "'num_workers'? (the producer's --threads decides it)"),
        ("prefetch", "'prefetch_factor'? (the producer's --ring decides it)"),
    ],
)
def test_what_torch_has_may_be_misspelt_too(place, key, text):
    with pytest.raises(TypeError) as caught:
        tsock.DataLoader("toy", **{key: 1})
    assert str(caught.value).endswith(text)


@pytest.mark.parametrize(
    "keywords, text",
    [
        ({"join": "epohc"}, "it is 'epoch', 'segment' or 'now'; did you mean"),
        ({"layout": "cwh"}, "it is 'hwc' or 'chw'; did you mean 'chw'?"),
        (
            {"root": "/", "dataset": "imagefodler"},
            "'webdataset' or 'packed'; did you mean 'imagefolder'?",
        ),
    ],
)
def test_a_misspelt_value_is_answered_with_the_right_one(
    place, keywords, text
):
    with pytest.raises(ValueError) as caught:
        tsock.DataLoader("toy", **keywords)
    assert text in str(caught.value)


def test_a_misspelt_field_is_answered_with_the_right_one(serve):
    serve()
    with pytest.raises(ValueError, match="did you mean 'label'"):
        tsock.DataLoader("toy", fields=("image", "labels"))


def test_all_that_torch_takes_is_answered_at_once(place):
    with pytest.raises(TypeError) as e:
        tsock.DataLoader("toy", 32, shuffle=True, num_workers=4, sizes=3)
    assert str(e.value) == (
        "tsock.DataLoader has no argument 'shuffle': the producer's --order "
        "decides it; nor 'num_workers': the producer's --threads decides it; "
        "nor 'sizes'; did you mean 'size'?"
    )


@pytest.mark.parametrize("given", [dict(name=[1]), dict(dataset=[1])])
def test_a_data_set_of_ones_own_is_told_of_serve(place, given):
    with pytest.raises(TypeError, match=r"\[1\]: it .*tsock\.serve"):
        tsock.DataLoader(batch_size=8, **given)
