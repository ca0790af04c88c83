"""From model directories and pairs to layers in the directories."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from planted_links import linked, planted_pairs, planted_tokenizer
from random_models import random_model

from relakit.align import teach
from relakit.align.aligner import Aligner
from relakit.align.choice import AlignmentChoice, ChosenOn, read_choice, write_choice
from relakit.align.layer import AlignmentLayer
from relakit.align.settings import LAYER_FILE, LAYER_WEIGHTS
from relakit.align.teach import AlignerTraining, train_aligners
from relakit.align.train_layer import LayerSettings, TrainedLayer
from relakit.analysis.gold import GoldAlignment
from relakit.analysis.pairs import AnalysisPair
from relakit.model import ModelAbout, load_model, save_model
from relakit.model.description import WEIGHTS_FILE

QUICK = LayerSettings(epochs=1, update_tokens=512)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two models, one for each direction, that were chosen heads for."""
    tokenizer = planted_tokenizer()
    tokenizer.save(tmp_path / "tokenizer.json")
    made = []
    for seed, (source, target) in enumerate([("en", "xx"), ("xx", "en")]):
        folder = tmp_path / f"{source}-{target}"
        model = random_model(vocabulary=tokenizer.size, seed=seed)
        about = ModelAbout(source_language=source, target_language=target)
        save_model(folder, model, tmp_path / "tokenizer.json", about)
        given = ChosenOn(by="given")
        choice = AlignmentChoice(layer=1, heads=(0,), reading="normal", chosen=given)
        write_choice(folder, choice)
        made.append(folder)
    return made[0], made[1]


def request(folders: tuple[Path, Path], **changes: object) -> AlignerTraining:
    plain = AlignerTraining(
        model=folders[0],
        reverse=folders[1],
        pairs=planted_pairs(60),
        settings=QUICK,
        force=True,  # so little teaches nothing
    )
    return dataclasses.replace(plain, **changes)


GOOD = LayerSettings(epochs=6, update_tokens=512, learning_rate=0.01)


def learning(folders: tuple[Path, Path], **changes: object) -> AlignerTraining:
    """One layer that learns something, and is kept only then."""
    pairs = planted_pairs(400)
    alone = {"reverse": None, "both": False, "by_links": True, "pairs": pairs, "settings": GOOD}
    return request(folders, **{**alone, "force": False, **changes})


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def trained(folder: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((folder / LAYER_FILE).read_text())["trained"]
    return content


def test_two_models_teach_each_other(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[str] = []
    told: Callable[[str, int, int | None], None] = lambda stage, done, total: stages.append(stage)  # noqa: E731
    monkeypatch.setattr(teach, "why_not_kept", lambda scores, rivals: None)  # however bad
    result = train_aligners(request(folders, files=("a", "b")), told)
    assert [layer.folder for layer in result.layers] == list(folders)
    assert result.left_out == 0
    parts = ["links", "training 1 of 2", "training 2 of 2"]
    expected = [f"round {number} of 3: {part}" for number in (1, 2, 3) for part in parts]
    assert list(dict.fromkeys(stages)) == expected
    for folder, other in (folders, folders[::-1]):
        about = trained(folder)
        assert about["by"] == "two models"
        assert about["other_model"] == str(other)
        assert about["files"] == ["a", "b"]
        assert about["heads"] == "layer 2, head 1, normal, end ignored"
        assert about["pairs"] == 54, "a tenth was held out"
        assert Aligner.load(folder).layer is not None


def test_a_model_that_was_replaced_meanwhile(folders: tuple[Path, Path]) -> None:
    """Its layer would be for states that it no longer has."""
    second = folders[1] / WEIGHTS_FILE

    def replace_it(stage: str, done: int, total: int | None) -> None:
        if stage == "round 3 of 3: training 1 of 2":
            second.write_bytes((folders[0] / WEIGHTS_FILE).read_bytes())

    with pytest.raises(ValueError, match=r"xx-en has got other weights since it was read"):
        train_aligners(request(folders), replace_it)
    assert not any((folder / LAYER_FILE).exists() for folder in folders)


def test_the_other_model_may_stay_as_it_is(folders: tuple[Path, Path]) -> None:
    result = train_aligners(request(folders, both=False))
    assert [layer.folder for layer in result.layers] == [folders[0]]
    assert trained(folders[0])["by"] == "two models"
    assert not (folders[1] / LAYER_FILE).exists()


def test_one_model_alone(folders: tuple[Path, Path]) -> None:
    train_aligners(request(folders, reverse=None, both=False))
    about = trained(folders[0])
    assert (about["by"], about["other_model"]) == ("one model", None)


def test_links_of_a_file_are_learnt_in_both_directions(folders: tuple[Path, Path]) -> None:
    settings = LayerSettings(epochs=6, update_tokens=512, learning_rate=0.01)
    changes = {"by_links": True, "pairs": planted_pairs(400), "settings": settings}
    train_aligners(request(folders, valid=planted_pairs(30, seed=1), **changes))
    for folder in folders:
        about = trained(folder)
        assert (about["by"], about["heads"], about["pairs"]) == ("links", None, 400)
        scores = about["scores"]
        assert isinstance(scores, dict)
        assert (scores["against"], scores["pairs"]) == ("gold", 30)
        assert scores["aer"] < 0.1


class Rounds:
    """Watches who teaches in each round, on how many pairs, and what is trained."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.teachers: list[tuple[str, int]] = []
        self.settings: list[LayerSettings] = []
        self.layers: list[AlignmentLayer] = []
        train_layer = teach.train_layer

        def watched_links(
            forward: Aligner, backward: Aligner, pairs: Sequence[AnalysisPair]
        ) -> Any:
            for aligner in (forward, backward):
                assert aligner.layer is None or aligner.layer in self.layers[-2:]
            self.teachers.append(("heads" if forward.layer is None else "layers", len(pairs)))
            return [pair.gold for pair in pairs]

        def watched_training(*arguments: Any) -> TrainedLayer:
            self.settings.append(arguments[3])
            self.layers.append((trained := train_layer(*arguments)).layer)
            return trained

        monkeypatch.setattr(teach, "links_of_two_models", watched_links)
        monkeypatch.setattr(teach, "train_layer", watched_training)
        monkeypatch.setattr(teach, "why_not_kept", lambda scores, rivals: None)


def test_layers_teach_the_next_ones(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teach, "PAIRS_TO_TEACH", 40)
    rounds = Rounds(monkeypatch)
    train_aligners(request(folders, both=False))
    assert rounds.teachers == [("heads", 40), ("layers", 40), ("layers", 60)]
    assert len(rounds.layers) == 5, "that of the second model only teaches"
    assert trained(folders[0])["rounds"] == 3
    assert trained(folders[0])["pairs"] == 54, "a tenth was held out"
    assert not (folders[1] / LAYER_FILE).exists()


def test_layers_that_find_nothing_do_not_teach(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = Rounds(monkeypatch)
    monkeypatch.setattr(teach, "why_not_kept", lambda scores, rivals: "it finds no link")
    stages: list[str] = []
    train_aligners(request(folders), lambda stage, done, total: stages.append(stage))
    assert rounds.teachers == [("heads", 60), ("heads", 60)]
    assert {stage[:12] for stage in stages} == {"round 1 of 3", "round 3 of 3"}
    assert trained(folders[0])["rounds"] == 1


def test_layers_that_agree_on_nothing_do_not_teach(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = Rounds(monkeypatch)
    find_links = teach.links_of_two_models
    nothing = GoldAlignment(frozenset())

    def none_of_layers(forward: Aligner, *others: Any) -> Any:
        found = find_links(forward, *others)
        return found if forward.layer is None else [nothing] * len(list(found))

    monkeypatch.setattr(teach, "links_of_two_models", none_of_layers)
    train_aligners(request(folders, rounds=2))
    assert [who for who, _ in rounds.teachers] == ["heads", "layers", "heads"]
    assert trained(folders[0])["rounds"] == 1


def test_one_round(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds(monkeypatch)
    train_aligners(request(folders, rounds=1))
    assert rounds.teachers == [("heads", 60)]
    assert trained(folders[0])["rounds"] == 1


def test_teachers_see_fewer_pairs_and_leave_their_time_to_others(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teach, "PAIRS_TO_TEACH", 81)
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    rounds = Rounds(monkeypatch)
    train_aligners(request(folders, settings=LayerSettings(minutes=6, update_tokens=512)))
    assert [some.epochs for some in rounds.settings] == [2, 2, 2, 2, None, None], "of 54 pairs"
    assert [some.minutes for some in rounds.settings] == [1, 6 / 5, 6 / 4, 2, 3, 6]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"rounds": 2, "by_links": True}, "rounds must be 1, got 2"),
    ],
)
def test_rounds_that_make_no_sense(
    changes: dict[str, object], message: str, folders: tuple[Path, Path]
) -> None:
    with pytest.raises(ValueError, match=message):
        train_aligners(request(folders, **changes))


@pytest.mark.parametrize(
    ("without_gold", "message"),
    [("pairs", "none of the pairs has any"), ("valid", "the valid pairs need gold links")],
)
def test_links_must_be_there_to_be_learnt(
    without_gold: str, message: str, folders: tuple[Path, Path]
) -> None:
    given = {"pairs": planted_pairs(60), "valid": planted_pairs(30)}
    given[without_gold] = [dataclasses.replace(pair, gold=None) for pair in given[without_gold]]
    with pytest.raises(ValueError, match=message):
        train_aligners(request(folders, by_links=True, **given))


def test_heads_are_chosen_where_nobody_has(folders: tuple[Path, Path]) -> None:
    for folder in folders:
        (folder / "alignment.json").unlink()
    train_aligners(request(folders))
    assert all(str(trained(folder)["heads"]).startswith("layer ") for folder in folders)
    assert not (folders[0] / "alignment.json").exists(), "60 pairs tell little"


def test_heads_that_enough_pairs_chose_are_kept(folders: tuple[Path, Path]) -> None:
    for folder in folders:
        (folder / "alignment.json").unlink()
    train_aligners(request(folders, pairs=planted_pairs(100), both=False))
    choice = read_choice(folders[0], load_model(folders[0])[0].config)
    assert choice is not None
    assert (choice.chosen.by, choice.chosen.pairs) == ("aer", 100)
    assert trained(folders[0])["heads"] == choice.in_words()
    assert not (folders[1] / "alignment.json").exists(), "that model stays as it is"


def test_a_layer_without_links_is_not_kept(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relakit.align.layer._FIRST_BIAS", -99.0)
    before = [contents(folder) for folder in folders]
    with pytest.raises(
        ValueError, match=r"en-xx is not kept: it finds no link in its exam on 6 pairs.*--force"
    ):
        train_aligners(request(folders, force=False))
    assert [contents(folder) for folder in folders] == before


def test_a_layer_that_is_worse_than_the_one_that_is_there_is_not_kept(
    folders: tuple[Path, Path],
) -> None:
    exam = planted_pairs(30, seed=1)
    first = train_aligners(learning(folders, valid=exam)).layers[0]
    assert [rival.what for rival in first.rivals] == ["heads"]
    assert first.rivals[0].aer > 0.5, "of a random model"
    before = contents(folders[0])
    rate = first.trained.scores.aer
    compared = rf"on 30 pairs its .* is 0\.\d+, that of the layer so far {rate:.3f}"
    with pytest.raises(ValueError, match=rf"not kept: in its exam {compared}"):
        train_aligners(learning(folders, valid=exam, pairs=planted_pairs(20)))
    assert contents(folders[0]) == before
    again = train_aligners(learning(folders, valid=exam)).layers[0]
    assert again.trained.scores == first.trained.scores, "as good is good enough"
    assert (again.rivals[0].what, again.rivals[0].aer) == ("layer", rate)


def test_heads_do_not_compete_in_an_exam_of_their_own_links(folders: tuple[Path, Path]) -> None:
    result = train_aligners(request(folders))
    assert [layer.rivals for layer in result.layers] == [(), ()]


def test_a_layer_that_learnt_little_is_not_kept(folders: tuple[Path, Path]) -> None:
    """Where there is nothing to compare it with."""
    (folders[0] / "alignment.json").unlink()
    valid = planted_pairs(30, seed=1)
    few = learning(folders, pairs=planted_pairs(20), valid=valid, settings=QUICK)
    with pytest.raises(ValueError, match=r"its alignment error rate is 0\.\d+, above 0\.5"):
        train_aligners(few)


def test_a_layer_of_old_weights_is_no_obstacle(folders: tuple[Path, Path]) -> None:
    (folders[0] / LAYER_FILE).write_text("{}")
    (folders[0] / "alignment.json").unlink()
    train_aligners(request(folders))
    assert Aligner.load(folders[0]).layer is not None


def test_what_cannot_be_used_is_counted(folders: tuple[Path, Path]) -> None:
    long = linked("dog " * 60, "dog", {(0, 0)})
    pairs = [*planted_pairs(30), AnalysisPair.from_texts("", "dog"), long]
    assert train_aligners(request(folders, pairs=pairs, max_tokens=50)).left_out == 2


def test_nothing_is_written_before_all_is_done(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def fails_in_the_end(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return teach_layer(*arguments)  # type: ignore[arg-type]

    teach_layer = teach.train_layer
    monkeypatch.setattr(teach, "train_layer", fails_in_the_end)
    with pytest.raises(KeyboardInterrupt):
        train_aligners(request(folders))
    assert len(calls) == 2
    for folder in folders:
        assert not (folder / LAYER_FILE).exists()
        assert not (folder / LAYER_WEIGHTS).exists()


def test_too_few_pairs(folders: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match="there are 9 pairs, too few to train on"):
        train_aligners(request(folders, pairs=planted_pairs(9)))
    with pytest.raises(ValueError, match="none of 2 pairs has words on both sides"):
        train_aligners(request(folders, pairs=[AnalysisPair.from_texts("", "a")] * 2))
