"""`relakit translate`: its output, and, run as a program, its streams, signals and exit codes.

A new process takes seconds to import torch: only tests that need one start one.
"""

import gzip
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from model_folders import write_model
from translate_runs import Result, Run

import relakit
from relakit.decode.native_engine import why_not_native

LINES = ["A small dog runs.", "", "the old bridge", "über die alte Brücke!"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("translate") / "model")


def start(*arguments: object) -> subprocess.Popen[bytes]:
    code = "from relakit.cli.main import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "translate", *map(str, arguments), "--threads", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_lines_in_lines_out(folder: Path) -> None:
    with start(folder, "--max-length", 6) as process:
        out, err = process.communicate("\n".join(LINES).encode(), timeout=120)
    assert (process.returncode, err) == (0, b"")
    expected = relakit.load(folder).translate(LINES, max_length=6)
    assert out.decode() == "".join(f"{line}\n" for line in expected)


@pytest.mark.parametrize("too_long", ["crop", "skip", "error"])
def test_lines_that_are_too_long(run: Run, folder: Path, too_long: str) -> None:
    lines = ["the old bridge", "dog " * 5000, "", "a dog"]
    text = "".join(f"{line}\n" for line in lines).encode()
    options = ("--max-length", 4, "--too-long", too_long)
    status, out, err = run(folder, *options, text=text)
    problem = b"standard input, line 2: it has more than 1,024 tokens; "
    if too_long == "error":
        assert (status, err) == (
            1,
            b"relakit: error: " + problem + b"split it, allow more with --max-tokens, or choose "
            b"--too-long crop or skip\n",
        )
        return
    done = {
        "crop": (" ".join(["dog"] * 1024), b"are translated up to token 1,024"),
        "skip": ("", b"are left out"),
    }
    lines[1], told = done[too_long]
    expected = relakit.load(folder).translate(lines, max_length=4)
    assert out.decode() == "".join(f"{line}\n" for line in expected)
    assert (status, err) == (0, b"relakit: " + problem + b"such lines " + told + b"\n")


def test_more_or_fewer_tokens_by_an_option(run: Run, folder: Path) -> None:
    few = run(folder, "--max-length", 4, "--max-tokens", 1, text=b"dog dog\n")
    assert few.out == run(folder, "--max-length", 4, text=b"dog\n").out
    assert b"it has more than 1 token;" in few.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beam", 100_000], "the beam must be at most 1,000, got 100,000: with a model of the"),
        (["--threads", 100_000], "--threads must be at most "),
        (
            ["--max-length", 10**12],
            "a search with a beam of 4 for a translation of up to 1,000,000",
        ),
        (["--too-long", "cut"], "unknown --too-long 'cut'; choose one of crop, "),
        (["--input", "/"], "/ is a folder; name a file"),
        (["--input", "/nowhere"], "/nowhere: there is no such file"),
    ],
)
def test_absurd_options(run: Run, folder: Path, options: list[object], message: str) -> None:
    status, out, err = run(folder, *options, text=b"a dog\n")
    assert (status, out) == (1, b"")
    assert err.decode().startswith(f"relakit: error: {message}")
    assert err.count(b"\n") == 1


def test_nbest_from_file_to_file(run: Run, folder: Path, tmp_path: Path) -> None:
    source, output = tmp_path / "in.gz", tmp_path / "out.txt"
    source.write_bytes(gzip.compress("\n".join(LINES).encode()))
    options = ("--max-length", 4, "--nbest", 2, "--beam", 3)
    result = run(folder, "--input", source, "--output", output, *options)
    assert result == (0, b"", b"")
    found = relakit.load(folder).translate_nbest(LINES, nbest=2, beam=3, max_length=4)
    rows = [line.split(" ||| ") for line in output.read_text().splitlines()]
    assert [row[0] for row in rows] == ["0", "0", "1", "2", "2", "3", "3"]
    hypotheses = [hypothesis for several in found for hypothesis in several]
    assert [row[1] for row in rows] == [hypothesis.text for hypothesis in hypotheses]
    assert [float(row[2]) for row in rows] == pytest.approx(
        [hypothesis.score for hypothesis in hypotheses], abs=1e-4
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.gz", "out.txt"]


def test_standard_streams_by_name(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "\n".join(LINES).encode()
    expected = run(folder, "--max-length", 4, text=text)
    named = run(folder, "--max-length", 4, "--input", "-", "--output", "-", text=text)
    assert named == expected
    assert expected.status == 0
    assert not any(tmp_path.iterdir())


def test_scores(run: Run, folder: Path) -> None:
    result = run(folder, "--scores", "--max-length", 4, text=b"A dog\n\n")
    first, second = result.out.decode().splitlines()
    score, text = first.split("\t")
    [[expected]] = relakit.load(folder).translate_nbest(["A dog"], nbest=1, max_length=4)
    assert (text, float(score)) == (expected.text, pytest.approx(expected.score, abs=1e-4))
    assert second == "0.0000\t"


def lines_of(result: Result) -> list[str]:
    assert (result.status, result.err) == (0, b"")
    return result.out.decode().split("\n")[:-1]


def test_samples(run: Run, folder: Path) -> None:
    options = ("--sample", "--temperature", 0.8, "--top-k", 20, "--top-p", 0.9, "--max-length", 6)
    text = "\n".join(LINES).encode()
    first = lines_of(run(folder, *options, text=text))
    assert first == lines_of(run(folder, *options, "--batch-tokens", 1, text=text))
    assert first == lines_of(run(folder, *options, "--interactive", text=text))
    assert first != lines_of(run(folder, *options, "--seed", 2, text=text))
    assert first == relakit.load(folder).translate(
        LINES, sample=True, temperature=0.8, top_k=20, top_p=0.9, max_length=6
    )
    several = lines_of(run(folder, *options, "--n-best", 7, text=b"A dog\n"))
    assert [line.split(" ||| ")[0] for line in several] == ["0"] * 7


def test_all_settings_of_the_search(run: Run, folder: Path) -> None:
    options = ("--length-factor", 0.5, "--length-margin", 2, "--min-length", 3, "--wide-ends")
    found = lines_of(run(folder, *options, "--beam", 2, text="\n".join(LINES).encode()))
    assert found == relakit.load(folder).translate(
        LINES, beam=2, length_factor=0.5, length_margin=2, min_length=3, wide_ends=True
    )
    assert found != relakit.load(folder).translate(LINES, beam=2)


PREFIXES = ["Ein klei", "", "die alte ", "\u00fcber"]


def test_prefixes_from_a_file_or_a_column(run: Run, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "prefixes.txt"
    path.write_text("".join(f"{prefix}\n" for prefix in PREFIXES), encoding="utf-8")
    text = "\n".join(LINES).encode()
    found = lines_of(run(folder, "--prefix-file", path, "--max-length", 9, text=text))
    assert found == relakit.load(folder).translate(LINES, prefixes=PREFIXES, max_length=9)
    assert found[0].startswith("Ein klei")
    assert found[2].startswith("die alte")
    columns = [f"{line}\t{prefix}" for line, prefix in zip(LINES, PREFIXES, strict=True)]
    columns[1] = LINES[1]  # without a tab there is no prefix
    for more in ((), ("--interactive",)):
        options = ("--prefix-column", "--max-length", 9, *more)
        assert found == lines_of(run(folder, *options, text="\n".join(columns).encode()))


@pytest.mark.parametrize(
    ("prefixes", "lines", "message"),
    [
        (b"x\n", b"a\nb\n", "prefixes.txt has 1 line, the input has more"),
        (b"x\ny\nz\n", b"a\n", "prefixes.txt has 3 lines, the input has 1"),
        (b"x\n\xff\n", b"a\nb\n", "prefixes.txt, line 2: not UTF-8"),
    ],
)
def test_prefixes_that_do_not_fit(
    run: Run, folder: Path, tmp_path: Path, prefixes: bytes, lines: bytes, message: str
) -> None:
    path, output = tmp_path / "prefixes.txt", tmp_path / "out.txt"
    path.write_bytes(prefixes)
    options = ("--prefix-file", path, "--output", output, "--max-length", 4)
    result = run(folder, *options, text=lines)
    assert result.status == 1
    assert message in result.err.decode()
    assert not output.exists()


def test_an_ensemble(run: Run, folder: Path, tmp_path: Path) -> None:
    other = write_model(tmp_path / "other", seed=1)
    text = "\n".join(LINES).encode()
    found = lines_of(run(folder, "--model", other, "--max-length", 6, text=text))
    assert found == relakit.load(folder, other).translate(LINES, max_length=6)
    named = lines_of(run("--model", folder, "--model", other, "--max-length", 6, text=text))
    assert named == found
    assert found != lines_of(run(folder, "--max-length", 6, text=text))


def test_without_a_model(run: Run) -> None:
    result = run()
    assert result.status == 2
    assert "Invalid value for MODEL: name a model directory" in result.err.decode()


def test_weights_of_one_byte(run: Run, folder: Path) -> None:
    if reasons := why_not_native(relakit.load(folder).model):
        pytest.skip("; ".join(reasons))
    result = run(folder, "--precision", "int8", "--max-length", 6, text="\n".join(LINES).encode())
    assert result.err == b""
    expected = relakit.load(folder, precision="int8").translate(LINES, max_length=6)
    assert result.out.decode() == "".join(f"{line}\n" for line in expected)


def test_a_line_that_is_no_utf8(run: Run, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    result = run(folder, "--output", output, "--max-length", 2, text=b"A dog\nb\xff\n")
    assert result.status == 1
    assert result.err.startswith(b"relakit: error: standard input, line 2: not UTF-8")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "abacus"], "unknown device 'abacus'; choose cpu"),
        (["--precision", "fp8"], "unknown precision 'fp8'"),
        (["--threads", "0"], "--threads must be at least 1, got 0"),
        (["--input", "no-such-file"], "no-such-file"),
        (["--nbest", "9"], "nbest must be from 1 to the beam, 4, got 9"),
        (["--temperature", "0.5"], "temperature is 0.5, but only draws depend on it: add --sample"),
        (["--sample", "--top-p", "0"], "top_p must be above 0 and at most 1, got 0.0"),
        (["--prefix-file", "x", "--prefix-column"], "exclude each other"),
        (["--prefix-file", "no-such-file"], "no-such-file"),
        (["--model", "no-such-model"], "no-such-model"),
    ],
)
def test_what_cannot_be(run: Run, folder: Path, arguments: list[str], message: str) -> None:
    result = run(folder, *arguments)
    assert result.status == 1
    printed = result.err.decode()
    assert printed.startswith("relakit: error: ")
    assert message in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("closed", "options", "message"),
    [
        ("<&-", [], "standard input is closed; redirect it, or give --input"),
        ("<&-", ["--output", "out"], "standard input is closed; redirect it, or give --input"),
        (">&-", [], "standard output cannot be written: it is closed; redirect it, or choose"),
    ],
)
def test_streams_that_are_closed(
    closed: str, options: list[str], message: str, folder: Path, tmp_path: Path
) -> None:
    code = "from relakit.cli.main import main; main()"
    command = [sys.executable, "-c", code, "translate", str(folder), *options]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *command],
        input=b"A dog.",
        capture_output=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert done.stderr.decode().startswith(f"relakit: error: {message}")
    assert done.stderr.count(b"\n") == 1
    assert not any(tmp_path.iterdir())


def test_a_reader_that_has_enough(folder: Path) -> None:
    with start(folder, "--interactive", "--max-length", 2) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"A dog\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"A dog\n" * 5)
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_interrupted_it_ends_without_a_traceback(folder: Path) -> None:
    with start(folder, "--interactive", "--max-length", 2) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"A dog\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("way", ["itself", "link"])
def test_the_input_is_not_overwritten(run: Run, folder: Path, tmp_path: Path, way: str) -> None:
    source = tmp_path / "in.txt"
    source.write_text("A dog\n")
    output = source
    if way == "link":
        output = tmp_path / "out.txt"
        output.symlink_to(source)
    result = run(folder, "--input", source, "--output", output)
    assert result.status == 1
    assert f"--output {output} is also --input {source}" in result.err.decode()
    result = run(folder, "--input", source, "--output", folder / "config.json")
    assert b"is a part of MODEL" in result.err
    assert source.read_text() == "A dog\n"


def test_nor_is_what_standard_input_comes_from(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("A dog\n")
    code = "from relakit.cli.main import main; main()"
    command = [sys.executable, "-c", code, "translate", str(folder), "--output", str(source)]
    with source.open("rb") as stdin:
        done = subprocess.run(command, stdin=stdin, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"in.txt is also standard input" in done.stderr
    assert source.read_text() == "A dog\n"


def test_folders_that_are_missing_are_made(run: Run, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "new" / "folder" / "out.txt"
    assert run(folder, "--output", output, "--max-length", 2, text=b"A dog\n").status == 0
    assert output.read_text().count("\n") == 1
