"""What an output path holds already."""

import os
from pathlib import Path

import pytest

from relakit.files.output_paths import (
    FOLDER_KINDS,
    MODEL,
    PREPARED,
    RUN,
    check_output_folder,
    refuse_inputs,
    what_is_in,
)


class TestFolders:
    def test_are_known_by_a_file(self, tmp_path: Path) -> None:
        assert what_is_in(tmp_path) is None
        assert what_is_in(tmp_path / "nowhere") is None
        for kind in FOLDER_KINDS:
            folder = tmp_path / kind.marker.replace(".", "-")
            folder.mkdir()
            (folder / kind.marker).touch()
            assert what_is_in(folder) == f"{kind.name} ({kind.marker})"
            assert what_is_in(folder, but=kind) is None

    def test_that_are_new_or_empty_will_do(self, tmp_path: Path) -> None:
        check_output_folder(tmp_path, MODEL, parts=(), replace=False)
        check_output_folder(tmp_path / "new", MODEL, parts=(), replace=False)

    def test_of_the_same_kind_are_replaced_when_asked(self, tmp_path: Path) -> None:
        (tmp_path / MODEL.marker).touch()
        check_output_folder(tmp_path, MODEL, parts=[MODEL.marker], replace=True)
        with pytest.raises(FileExistsError, match="holds a model directory already; --force"):
            check_output_folder(tmp_path, MODEL, parts=[MODEL.marker], replace=False)

    @pytest.mark.parametrize("replace", [False, True])
    @pytest.mark.parametrize(
        ("name", "what"),
        [
            (PREPARED.marker, r"a prepared corpus \(corpus\.json\)"),
            (RUN.marker, r"a training run \(recipe\.json\)"),
            ("thesis.tex", r"'thesis\.tex'"),
        ],
    )
    def test_of_another_kind_are_kept(
        self, tmp_path: Path, name: str, what: str, replace: bool
    ) -> None:
        (tmp_path / name).touch()
        message = f"{tmp_path} holds {what}, which is not part of a model directory and would be"
        with pytest.raises(FileExistsError, match=message):
            check_output_folder(tmp_path, MODEL, parts=(), replace=replace)

    def test_a_file_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(FileExistsError, match="file is a file; a model directory needs a"):
            check_output_folder(tmp_path / "file", MODEL, parts=(), replace=True)


class TestInputs:
    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        path = tmp_path / "source.en"
        path.write_text("text")
        return path

    @pytest.mark.parametrize("way", ["itself", "another spelling", "symbolic link", "hard link"])
    def test_are_not_overwritten(self, source: Path, tmp_path: Path, way: str) -> None:
        output = tmp_path / "output"
        if way == "itself":
            output = source
        elif way == "another spelling":
            (tmp_path / "folder").mkdir()
            output = tmp_path / "folder" / ".." / source.name
        elif way == "symbolic link":
            output.symlink_to(source)
        else:
            os.link(source, output)
        with pytest.raises(ValueError, match="would be overwritten; choose another name") as caught:
            refuse_inputs("--output", output, {"--gold": None, "--source": source})
        assert f"--output {output} is also --source {source}" in str(caught.value)

    def test_through_a_link(self, source: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(source)
        with pytest.raises(ValueError, match="is also --input"):
            refuse_inputs("--output", source, {"--input": tmp_path / "link"})

    def test_in_the_folder_that_is_written(self, source: Path, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"--out .* holds --source .*, which would be lost"):
            refuse_inputs("--out", tmp_path, {"--source": source})

    def test_a_folder_whose_part_is_written(self, source: Path, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"is a part of MODEL .*, which would be damaged"):
            refuse_inputs("--output", source, {"MODEL": tmp_path})
        refuse_inputs("--output", tmp_path / "new", {"MODEL": tmp_path})

    def test_others_will_do(self, source: Path, tmp_path: Path) -> None:
        other = tmp_path / "other"
        refuse_inputs("--output", other, {"--source": source, "--gold": tmp_path / "nowhere"})
        other.write_text("text")
        refuse_inputs("--output", other, {"--source": source})

    def test_a_device_may_be_both(self) -> None:
        null = Path(os.devnull)
        refuse_inputs("--output", null, {"--input": null})
