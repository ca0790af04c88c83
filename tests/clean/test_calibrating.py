"""Fitting a calibration on scores that are made up."""

from dataclasses import replace

import numpy as np
import pytest
from calibration_samples import KINDS, ORIGIN, sample

from relakit.clean.calibrating import Fitted, fit_calibration, precision_at
from relakit.clean.calibration import Judgement
from relakit.clean.calibration_features import BY_NAME
from relakit.data.noise_draw import CLEAN


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    pairs, columns = sample()
    return fit_calibration(pairs, columns, ORIGIN, expected_noise=0.5)


def test_probabilities_of_pairs_that_it_has_not_seen(fitted: Fitted) -> None:
    pairs, columns = sample(seed=1)
    found = fitted.calibration.judge(columns)
    labels = np.array([pair.label for pair in pairs])
    assert (found.probability[labels == CLEAN] > 0.5).mean() > 0.97
    for kind in KINDS:
        assert (found.probability[labels == kind] < 0.5).mean() > 0.97
        kinds = [found.kind(place) for place in np.flatnonzero(labels == kind)]
        assert kinds.count(kind) > 0.97 * len(kinds)


def test_reasons_are_what_was_done(fitted: Fitted) -> None:
    pairs, columns = sample(seed=1)
    found = fitted.calibration.judge(columns)
    reasons = {
        kind: [found.reasons(n, 1)[0] for n, pair in enumerate(pairs) if pair.label == kind]
        for kind in KINDS
    }
    assert set(reasons["shuffled"]) == {"the model finds the translation unlikely"}
    assert set(reasons["truncated"]) <= {
        "the translation seems to end too early",
        "a target shorter than usual for the source",
        "fewer target words than usual for the source",
    }


def test_what_is_better_is_no_reason() -> None:
    """Planted noise may be in better German than clean pairs; that makes no other text noise."""
    pairs, columns = sample()
    german = np.random.default_rng(1).normal(size=len(pairs))
    german += [2.0 * (pair.label == "shuffled") for pair in pairs]
    found = fit_calibration(
        pairs, {**columns, "target_language": german}, ORIGIN, expected_noise=0.5
    ).calibration
    place = found.features.index("target_language")
    assert found.kinds["shuffled"].against_clean.weights[place] == 0.0
    for kind in found.kinds.values():
        for name, weight in zip(found.features, kind.against_clean.weights, strict=True):
            assert weight * BY_NAME[name].sign >= 0


def test_a_copy_is_not_named_after_what_it_shares_with_other_noise() -> None:
    """It is even less likely a translation than that of something else."""
    pairs, columns = sample()
    pairs = [replace(p, label="copied") if p.label == "truncated" else p for p in pairs]
    is_copied = np.array([pair.label == "copied" for pair in pairs])
    columns["cross_entropy"] = columns["cross_entropy"] + 9 * is_copied
    columns["same_words"] = columns["target_words"] * np.where(is_copied, 1.0, 0.1)
    found = fit_calibration(pairs, columns, ORIGIN, expected_noise=0.5).calibration.judge(columns)
    names = list(found.calibration.kinds)
    assert names[int(found.log_odds[is_copied].mean(0).argmax())] == "shuffled"
    assert {found.kind(place) for place in np.flatnonzero(is_copied)} == {"copied"}
    place = int(np.flatnonzero(is_copied)[0])
    shares = found.shares(place)
    assert max(shares, key=shares.__getitem__) == "copied"
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares[CLEAN] == found.probability[place]


def test_what_says_nothing_is_left_out(fitted: Fitted) -> None:
    assert {"null_rate", "target_language", "dual_cross_entropy"} <= set(fitted.left_out)
    assert not set(fitted.left_out) & set(fitted.calibration.features)
    assert fitted.kinds_left_out == ("inserted", "language", "copied")
    notes = " ".join(fitted.notes())
    assert "does without null_rate" in notes
    assert "no inserted or language or copied noise could be planted" in notes


def test_held_out_pairs_are_counted_apart(fitted: Fitted) -> None:
    held_out, fitted_on = fitted.calibration.held_out, fitted.calibration.fitted_on
    assert (fitted_on.clean, fitted_on.noise) == (200, dict.fromkeys(KINDS, 200))
    assert len(held_out.clean_log_odds) == 100
    assert {kind: len(odds) for kind, odds in held_out.noise_log_odds.items()} == dict.fromkeys(
        KINDS, 100
    )
    areas = held_out.areas
    assert areas["cross_entropy"]["shuffled"].value > 0.99
    assert areas["cross_entropy"]["truncated"].value == pytest.approx(0.5, abs=0.1)
    for kind in KINDS:
        assert areas["probability"][kind].value > 0.99
        assert areas["probability"][kind].low <= areas["probability"][kind].value


def test_other_pairs_do_not_change_the_fit() -> None:
    """What is held out is not looked at."""
    pairs, columns = sample()
    is_held_out = np.array([pair.part == "held out" for pair in pairs])
    changed = {
        name: np.where(is_held_out, numbers * 1.5, numbers) for name, numbers in columns.items()
    }
    one, other = (
        fit_calibration(pairs, some, ORIGIN, expected_noise=0.5).calibration
        for some in (columns, changed)
    )
    assert (one.kinds, one.medians, one.scales) == (other.kinds, other.medians, other.scales)
    assert one.held_out != other.held_out


@pytest.mark.parametrize("share", [0.2, 0.4])
def test_noise_in_the_sample_is_left_out(share: float) -> None:
    pairs, columns = sample(contaminated=share)
    origin = replace(ORIGIN, are_known=False)
    fitted = fit_calibration(pairs, columns, origin, expected_noise=0.5)
    found = fitted.calibration.fitted_on
    assert found.origin == "corpus"
    assert found.dropped / (found.dropped + found.clean) == pytest.approx(share, abs=0.08)
    assert any("look like noise" in note for note in fitted.notes()) == (share > 0.3)
    fresh, scores = sample(seed=1)
    is_clean = np.array([pair.label == CLEAN for pair in fresh])
    kept = fitted.calibration.judge(scores).probability > 0.5
    assert kept[is_clean].mean() > 0.9
    assert kept[~is_clean].mean() < 0.05


def test_a_kind_that_was_planted_in_doubted_pairs() -> None:
    """It stays, and so do they."""
    pairs, columns = sample()
    few = range(15)
    kept = [n for n, p in enumerate(pairs) if p.label != "truncated" or p.origin in few]
    some = {name: numbers[kept] for name, numbers in columns.items()}
    left = [pairs[n] for n in kept]
    is_bad = np.array([pair.label == CLEAN and pair.origin in few for pair in left])
    some["cross_entropy"] = np.where(is_bad, 5.0, some["cross_entropy"])
    origin = replace(ORIGIN, are_known=False)
    found = fit_calibration(left, some, origin, expected_noise=0.5).calibration.fitted_on
    assert (found.noise["truncated"], found.dropped) == (10, 0)


def test_nothing_but_noise() -> None:
    """What it makes of that is of no use, but it is said."""
    pairs, columns = sample(contaminated=0.7)
    origin = replace(ORIGIN, are_known=False)
    fitted = fit_calibration(pairs, columns, origin, expected_noise=0.5)
    assert any("name clean pairs with --clean" in note for note in fitted.notes())


def test_more_expected_noise_makes_pairs_less_likely() -> None:
    pairs, columns = sample()
    odds = [
        fit_calibration(pairs, columns, ORIGIN, expected_noise=share)
        .calibration.judge(columns)
        .noise_log_odds
        for share in (0.5, 0.9)
    ]
    assert odds[1] - odds[0] == pytest.approx(np.log(9))


def test_pairs_without_an_end() -> None:
    """Those that are cropped are judged by all else; the others as before."""
    pairs, columns = sample()
    is_cropped = np.arange(len(pairs)) % 10 == 0
    partly = {**columns, "end_loss": np.where(is_cropped, np.nan, columns["end_loss"])}
    fitted = fit_calibration(pairs, partly, ORIGIN, expected_noise=0.5)
    assert "log_end_loss" in fitted.calibration.features
    fresh, scores = sample(seed=1)
    labels = np.array([pair.label for pair in fresh])[1:]
    is_blank = np.arange(len(fresh)) == 0
    without = {name: np.where(is_blank, np.nan, numbers) for name, numbers in scores.items()}
    without["end_loss"][:] = np.nan
    found = fitted.calibration.judge(without)
    assert np.isnan(found.probability[0]), "it has no scores"
    assert (found.probability[1:][labels == CLEAN] > 0.5).mean() > 0.97
    assert (found.probability[1:][labels == "shuffled"] < 0.5).mean() > 0.97
    ends = "the translation seems to end too early"
    assert not any(ends in found.reasons(place) for place in range(1, len(fresh)))


@pytest.mark.parametrize("held_out", [1, 4])
def test_a_kind_that_is_hardly_held_out(held_out: int) -> None:
    """It has no model, and nothing is said about it."""
    pairs, columns = sample()
    few = [n for n, p in enumerate(pairs) if (p.label, p.part) == ("truncated", "held out")]
    kept = [n for n in range(len(pairs)) if n not in few[held_out:]]
    some = {name: numbers[kept] for name, numbers in columns.items()}
    fitted = fit_calibration([pairs[n] for n in kept], some, ORIGIN, expected_noise=0.5)
    assert "truncated" in fitted.kinds_left_out
    found = fitted.calibration.held_out
    assert set(found.noise_log_odds) == {"shuffled"} == set(found.areas["probability"])
    odds = fitted.calibration.kinds["shuffled"].against_others
    assert not any((odds.bias, *odds.weights)), "there is no other kind"


def test_what_may_be_noise_is_believed_less() -> None:
    pairs, columns = sample()
    known, doubted = (
        fit_calibration(pairs, columns, origin, expected_noise=0.5).calibration
        for origin in (ORIGIN, replace(ORIGIN, are_known=False))
    )
    for kind, model in known.kinds.items():
        sizes = [
            np.linalg.norm(calibration.kinds[kind].against_clean.weights)
            for calibration in (known, doubted)
        ]
        assert sizes[1] < 0.8 * sizes[0], model


def test_no_pair_is_named_after_what_it_cannot_be(fitted: Fitted) -> None:
    """Of the kinds that are likelier than a clean pair, the one that it looks like most."""
    rows = np.zeros((1, len(fitted.calibration.features)))
    odds = np.array([[3.0, -2.0]])
    likely = Judgement(fitted.calibration, rows, odds, kind_log_odds=np.array([[-5.0, 5.0]]))
    assert likely.kind(0) == "shuffled"
    assert likely.shares(0)["truncated"] == 0.0
    unlikely = Judgement(fitted.calibration, rows, -(odds**2), np.array([[-5.0, 5.0]]))
    assert unlikely.kind(0) == "truncated"
    assert sum(unlikely.shares(0).values()) == pytest.approx(1.0)


def test_precision_were_half_of_all_noise() -> None:
    noise = np.arange(10, dtype=float)
    # 9 of 10 are found with a cut at 1; of 20 clean pairs two are above.
    clean = np.array([0.0] * 18 + [5.0] * 2)
    assert precision_at(clean, noise, 0.9) == pytest.approx(0.9 / (0.9 + 0.1))
    assert precision_at(clean - 10, noise, 0.9) == 1.0
