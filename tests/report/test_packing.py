"""Packed sentences: what is 0 stays 0, and what is not does not become it."""

import dataclasses

import numpy as np
import pytest
from report_samples import cross_words, make_view, sample_views, with_output
from unpacking import unpack_view

from relakit.analysis.links import links_of
from relakit.attention_kinds import ATTENTION_KINDS
from relakit.report import packing
from relakit.report.packing import cross_null_rate, pack_view, quantise


@pytest.mark.parametrize("sparse", [True, False])
def test_weights_come_back_within_half_a_step(sparse: bool) -> None:
    view = sample_views(1, sparse=sparse)[0]
    header, weights, _ = unpack_view(pack_view(view).text)
    for kind in ATTENTION_KINDS:
        step = view.weights[kind].max((-1, -2), keepdims=True) / 255
        error = np.abs(weights[kind] - view.weights[kind])
        # A weight of less than half a step becomes a whole one.
        assert (error <= np.where(view.weights[kind] < step / 2, 1, 0.5001) * step).all()
        np.testing.assert_array_equal(weights[kind] == 0, view.weights[kind] == 0)
    assert header["sourceTokens"] == [view.source[a:b] for a, b in view.source_token_spans]
    assert header["targetWords"] == [view.target[a:b] for a, b in view.target_words]
    assert view.gold is not None
    assert {tuple(link) for link in header["gold"]["sure"]} == view.gold.sure
    assert {tuple(link) for link in header["gold"]["possible"]} == (
        view.gold.possible - view.gold.sure
    )


def test_tiny_weights_are_not_lost() -> None:
    weights = np.array([[[[0.0, 1e-45, 1e-9, 3e38]], [[0.0, 0.0, 0.0, 1e-45]]]], dtype=np.float32)
    scales, levels = quantise(weights)
    assert levels.dtype == np.uint8
    assert levels.tolist() == [[[[0, 1, 1, 255]], [[0, 0, 0, 255]]]]
    np.testing.assert_array_equal(scales, weights.max((-1, -2)))


def test_a_head_without_weights() -> None:
    scales, levels = quantise(np.zeros((2, 3, 4, 5), dtype=np.float32))
    assert not scales.any()
    assert not levels.any()


def test_negative_weights_keep_their_sign() -> None:
    view = make_view(0, "a b c", "d e f", sparse=True)
    weights = {**view.weights, "cross": view.weights["cross"] - np.float32(0.5)}
    weights["cross"][0, 0, 0, 0] = -1e-20
    signed = dataclasses.replace(view, weights=weights)
    header, unpacked, _ = unpack_view(pack_view(signed).text)
    assert header["signed"] == {"encoder": False, "decoder": False, "cross": True}
    np.testing.assert_array_equal(np.sign(unpacked["cross"]), np.sign(weights["cross"]))
    step = np.abs(weights["cross"]).max((-1, -2), keepdims=True) / 127
    assert (np.abs(unpacked["cross"] - weights["cross"]) <= step * 1.001).all()


def test_any_text_can_be_packed() -> None:
    text = "naïve 😀 \udc80 \x00 </script> 中文"
    header, _, _ = unpack_view(pack_view(make_view(0, text, text, sparse=True)).text)
    assert "".join(header["sourceWords"]) == text.replace(" ", "")


def test_one_token() -> None:
    view = make_view(0, "a", "b", sparse=True)
    _, weights, _ = unpack_view(pack_view(view).text)
    assert {kind: weights[kind].shape[2:] for kind in ATTENTION_KINDS} == dict.fromkeys(
        ATTENTION_KINDS, (2, 2)
    )


def test_links_are_those_of_the_exact_weights() -> None:
    view = sample_views(1, sparse=True)[0]
    # Two weights less than a step apart, the larger one behind, and one that is larger by far.
    view.weights["cross"][1, 2, 0] = 0
    view.weights["cross"][1, 2, 0, :2] = 0.5, np.nextafter(np.float32(0.5), np.float32(1))
    view.weights["cross"][1, 2, -1, -1] = 1
    _, _, links = unpack_view(pack_view(view).text)
    assert links[0, 1, 2, 0] == 1
    layers, heads = view.weights["cross"].shape[:2]
    for first, reading in enumerate(links):
        for layer in range(layers):
            for head in range(heads + 1):
                words = cross_words(view, layer, None if head == heads else head, first)
                found = reading[layer, head].tolist()
                assert {(s, t) for t, s in enumerate(found) if s >= 0} == links_of(words)


def test_links_where_the_end_competes() -> None:
    view = make_view(0, "a b", "c d", sparse=True)
    view.weights["cross"][:] = 0
    view.weights["cross"][..., 0, :] = 0.1, 0.3, 0.4
    assert unpack_view(pack_view(view).text)[2][0, 0, 0].tolist() == [1, -1]
    assert unpack_view(pack_view(view, "competes").text)[2][0, 0, 0].tolist() == [-1, -1]


@pytest.mark.parametrize("texts", [("", ""), ("a", ""), ("", "b")])
def test_empty_sentences(texts: tuple[str, str]) -> None:
    view = make_view(0, *texts, sparse=True)
    _, weights, links = unpack_view(pack_view(view).text)
    assert weights["cross"].shape[2:] == (len(texts[1]) + 1, len(texts[0]) + 1)
    assert links.shape == (2, 3, 5, len(texts[1]))


def test_null_rate() -> None:
    view = make_view(0, "a b c d", "e f g h", sparse=True)
    weights = np.zeros_like(view.weights["cross"])
    weights[:, :, 1, 2] = 0.5  # one of five rows
    view = dataclasses.replace(view, weights={**view.weights, "cross": weights})
    assert cross_null_rate(view) == pytest.approx(0.8)
    assert pack_view(view).null_rate == pytest.approx(0.8)


def test_broken_views_are_refused() -> None:
    view = make_view(4, "a b", "c d", sparse=True)
    broken = view.weights["cross"].copy()
    broken[0, 0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity in the cross attention of pair 5: "):
        pack_view(dataclasses.replace(view, weights={**view.weights, "cross": broken}))
    short = view.weights["encoder"][..., :-1]
    with pytest.raises(ValueError, match=r"pair 5: encoder attention must have the shape .*3, 3"):
        pack_view(dataclasses.replace(view, weights={**view.weights, "encoder": short}))


def test_the_own_translation_is_packed_beside_the_reference() -> None:
    view = make_view(3, "a b c", "d e f.", sparse=True)
    packed = pack_view(view)
    assert (packed.own_text, packed.chrf, packed.loss) == (None, 100, view.loss)
    assert unpack_view(packed.text)[0]["difference"] is None
    view = with_output(view, "d x f.", chrf=40, sparse=True)
    packed = pack_view(view)
    assert packed.chrf == 40
    assert unpack_view(packed.text)[0]["difference"] == [
        ["same", "d"], ["missing", "e"], ["same", " "], ["added", "x"], ["same", " "],
        ["same", "f."],
    ]  # fmt: skip
    assert packed.own_text is not None
    header, weights, _ = unpack_view(packed.own_text)
    assert header["targetWords"] == ["d", "x", "f", "."]
    assert view.own is not None
    step = view.own.weights["cross"].max((-1, -2), keepdims=True) / 255
    assert (np.abs(weights["cross"] - view.own.weights["cross"]) <= step * 1.001).all()


def test_an_endless_own_translation_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    view = with_output(make_view(0, "a", "b", sparse=True), "x " * 50, chrf=0, sparse=True)
    assert pack_view(view).own_text is not None
    monkeypatch.setattr(packing, "MOST_TOKENS", 49)
    assert pack_view(view).own_text is None
    assert unpack_view(pack_view(view).text)[0]["difference"] is not None
