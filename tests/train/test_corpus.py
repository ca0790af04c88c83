"""What a trained model knows about its languages: learned from the text of its corpus."""

from pathlib import Path

from small_runs import recipe_of

from relakit.data.prepared_reader import PreparedCorpus
from relakit.model.description import read_description
from relakit.train.averaging import average_run
from relakit.train.corpus import learn_languages
from relakit.train.run import run_training

ENGLISH, GERMAN = "two three five", "zwei drei fünf"


def test_both_directions(corpus: PreparedCorpus) -> None:
    forward = learn_languages(corpus)
    backward = learn_languages(PreparedCorpus.load(corpus.folder, reverse=True))
    assert forward is not None
    assert backward is not None
    assert min(forward.log_odds(ENGLISH, GERMAN)) > 0 > max(forward.log_odds(GERMAN, ENGLISH))
    assert backward.log_odds(GERMAN, ENGLISH) == forward.log_odds(ENGLISH, GERMAN)[::-1]


def test_a_run_keeps_it_with_its_model(corpus: PreparedCorpus, tmp_path: Path) -> None:
    run_training(recipe_of(corpus, training={"updates": 10}), tmp_path / "run")
    average_run(tmp_path / "run", tmp_path / "averaged", last=1)
    average_run(tmp_path / "run", tmp_path / "averaged", last=1, replace=True)
    learned = learn_languages(corpus)
    assert learned is not None
    for folder in (tmp_path / "run" / "model", tmp_path / "averaged"):
        kept = read_description(folder).languages()
        assert kept is not None
        assert kept.content == learned.content
