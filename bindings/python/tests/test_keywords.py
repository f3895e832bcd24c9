# SPDX-License-Identifier: MIT
"""What the constructor can be asked for, seen from outside: its signature."""

import inspect
import logging
import warnings

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
        tsock.DataLoader("toy", **{key: "another"})
    assert str(e.value).endswith(": " + keywords.ELSEWHERE[key])


def test_what_torch_does_anyway_is_no_wish(serve, caplog):
    torch = pytest.importorskip("torch")
    serve()
    caplog.set_level(logging.INFO, "tsock")
    theirs = inspect.signature(torch.utils.data.DataLoader).parameters
    given = {
        key: parameter.default
        for key, parameter in theirs.items()
        if key != "dataset"
    }
    # All that torch's loader takes is known here.
    assert set(given) <= {
        *inspect.signature(tsock.DataLoader).parameters,
        *keywords.TORCHS_DEFAULTS,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader = tsock.DataLoader("toy", **given)
    assert loader.batch_size == 1 and loader.num_workers == 0
    assert not [r for r in caplog.records if "num_workers" in r.message]
    loader.close()
    with tsock.DataLoader("toy", 16, num_workers=4, prefetch_factor=2) as one:
        assert one.num_workers == 0 and len(list(one)) == 13
    said = [r.message for r in caplog.records if "num_workers" in r.message]
    assert len(said) == 1 and "num_workers=4" in said[0]


@pytest.mark.parametrize(
    "key, value",
    [
        ("num_workers", -1),
        ("num_workers", True),
        ("num_workers", "4"),
        ("persistent_workers", True),
        ("prefetch_factor", 4),
        ("shuffle", False),
        ("collate_fn", len),
        ("in_order", False),
    ],
)
def test_what_torch_would_be_asked_for_is_refused(place, key, value):
    with pytest.raises(TypeError, match="no argument %r: " % key):
        tsock.DataLoader("toy", **{key: value})


@pytest.mark.parametrize("key", sorted(keywords.OF_IMAGES))
def test_words_for_images_say_what_there_is(place, key):
    for make in (tsock.DataLoader, tsock.Producer):
        with pytest.raises(TypeError) as e:
            make(name="toy", root="/", **{key: None})
        assert str(e.value).endswith(": " + keywords.OF_IMAGES[key])


@pytest.mark.parametrize(
    "size, text",
    [
        ((224, 224), "it is a whole number, such as size=224"),
        ([224, 200], r"made by a recipe, .*RandomResizedCrop\(\(224, 200\)\)"),
        ((), "images of other shapes are made by a recipe"),
    ],
)
def test_a_height_and_a_width_are_answered(place, size, text):
    with pytest.raises(TypeError, match=text):
        tsock.DataLoader("toy", root="/", size=size)


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
            "'tokens' or 'packed'; did you mean 'imagefolder'?",
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
        tsock.DataLoader(
            "toy", 32, shuffle=True, num_workers=4, generator=3, sizes=3
        )
    assert str(e.value) == (
        "tsock.DataLoader has no argument 'shuffle': the producer's --order "
        "decides it; nor 'generator': the producer's --seed decides it; "
        "nor 'sizes'; did you mean 'size'?"
    )


@pytest.mark.parametrize("given", [dict(name=[1]), dict(dataset=[1])])
def test_a_data_set_of_ones_own_is_told_of_serve(place, given):
    with pytest.raises(TypeError, match=r"\[1\]: it .*tsock\.serve"):
        tsock.DataLoader(batch_size=8, **given)
