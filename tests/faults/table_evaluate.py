"""`relakit evaluate`, `generate`, `reproduce`, `bench`, `doctor` and the command itself."""

from fault_rows import Row, put, row, usage

EVALUATE = "evaluate --hypothesis text.en --reference text.de"

ROWS: tuple[Row, ...] = (
    usage("an unknown command", "evalute", "No such command 'evalute'. Did you mean 'evaluate'?"),
    usage(
        "an unknown option of relakit",
        "--verbose",
        "No such option: --verbose (Possible options: --version)",
    ),
    row(
        "evaluate: nothing",
        "evaluate",
        "name what to score: either MODEL with --source, or --hypothesis",
    ),
    row(
        "evaluate: a model and a hypothesis",
        "evaluate model --hypothesis text.en --reference text.de",
        "name what to score: either MODEL with --source, or --hypothesis",
    ),
    row(
        "evaluate: no reference",
        "evaluate --hypothesis text.en",
        "--reference is missing: the translations to compare with",
    ),
    row(
        "evaluate: no source",
        "evaluate model --reference text.de",
        "--source is missing: what the model is to translate",
    ),
    row(
        "evaluate: a source without a model",
        f"{EVALUATE} --source text.en",
        "--source is for a model to translate, and none is named; leave it out",
    ),
    row(
        "evaluate: no such hypothesis",
        "evaluate --hypothesis none --reference text.de",
        "none: there is no such file",
    ),
    row(
        "evaluate: no such reference",
        "evaluate --hypothesis text.en --reference none",
        "none: there is no such file",
    ),
    row(
        "evaluate: no such source",
        "evaluate model --source none --reference text.de",
        "none: there is no such file",
    ),
    row(
        "evaluate: no such model",
        "evaluate none --source text.en --reference text.de",
        "none is no model directory: there is no such folder",
    ),
    row(
        "evaluate: other lines",
        EVALUATE,
        "text.en has 1 line, text.de has 3: line n of one must belong to line n of the other",
        put("text.en", "a\n"),
    ),
    row(
        "evaluate: other lines of a second reference",
        f"{EVALUATE} --reference pairs.tsv",
        "pairs.tsv has 2 lines, text.de has 3: line n of one must belong to line n of the other",
    ),
    row(
        "evaluate: other lines of the source",
        "evaluate model --source pairs.tsv --reference text.de",
        "pairs.tsv has 2 lines, text.de has 3: line n of one must belong to line n of the other",
    ),
    row(
        "evaluate: other lines of the baseline",
        f"{EVALUATE} --baseline pairs.tsv",
        "pairs.tsv has 2 lines, text.de has 3: line n of one must belong to line n of the other",
    ),
    row("evaluate: no such baseline", f"{EVALUATE} --baseline none", "none: there is no such file"),
    row(
        "evaluate: no such baseline of a model",
        "evaluate model --source text.en --reference text.de --baseline none --output out.de",
        "none: there is no such file",
    ),
    row(
        "evaluate: a baseline that is no model",
        "evaluate model --source text.en --reference text.de --baseline corpus",
        "corpus is no model directory: it has no config.json. `relakit train` writes its models to OUT/model",
    ),
    row(
        "evaluate: no draws, with a model",
        "evaluate model --source text.en --reference text.de --baseline text.en --samples 0",
        "samples must be at least 1, got 0",
    ),
    row(
        "evaluate: more draws than fit into memory, before anything is translated",
        "evaluate model --source text.en --reference text.de --baseline text.en --samples 99999999999 --output out.de",
        "comparing 3 lines with 99,999,999,999 samples would need about ... of memory, this machine has ...; draw fewer samples, or compare fewer lines",
    ),
    row(
        "evaluate: a line that is too long for the model",
        "evaluate model --source text.en --reference text.de --max-tokens 2 --too-long error",
        "text.en, line 1: it has more than 2 tokens; split it, allow more with --max-tokens, or choose --too-long crop or skip",
    ),
    row(
        "evaluate: a baseline model without a source",
        f"{EVALUATE} --baseline model",
        "--source is missing: what the model is to translate",
    ),
    row(
        "evaluate: an unknown metric",
        f"{EVALUATE} --metric blue",
        "unknown metric 'blue'; choose one of BLEU, chrF, chrF++, TER, tokenised BLEU",
    ),
    row(
        "evaluate: an unknown tokenizer",
        f"{EVALUATE} --tokenize moses",
        "unknown BLEU tokenizer 'moses'; choose one of ...",
    ),
    row(
        "evaluate: no draws",
        f"{EVALUATE} --baseline text.en --samples 0",
        "samples must be at least 1, got 0",
    ),
    usage(
        "evaluate: draws in words",
        f"{EVALUATE} --samples many",
        "Invalid value for '--samples': it must be a whole number, got 'many'",
    ),
    row(
        "evaluate: a hypothesis that is a model",
        "evaluate --hypothesis model --reference text.de",
        "model is a folder; name a file",
    ),
    row("generate: no pairs", "generate out --pairs 0", "--pairs must be at least 1, got 0"),
    row(
        "generate: pairs below zero",
        "generate out --pairs -4",
        "--pairs must be at least 1, got -4",
    ),
    usage("generate: not how many", "generate out", "Missing option '--pairs'"),
    usage(
        "generate: pairs in words",
        "generate out --pairs many",
        "Invalid value for '--pairs': it must be a whole number, got 'many'",
    ),
    row(
        "generate: more than there are",
        "generate out --pairs 99999999999999999999999",
        "--pairs must be at most 1,000,000,000, got 99,999,999,999,999,999,999,999",
    ),
    row(
        "generate: an unknown split",
        "generate out --pairs 3 --split dev=3",
        "--split dev=3: unknown split 'dev'; choose one of train, valid, test",
    ),
    row(
        "generate: a split without a size",
        "generate out --pairs 3 --split valid",
        "--split needs a name and a number, such as test=1000, got 'valid'",
    ),
    row(
        "generate: a split of words",
        "generate out --pairs 3 --split valid=many",
        "--split needs a name and a number, such as test=1000, got 'valid=many'",
    ),
    row(
        "generate: a split below zero",
        "generate out --pairs 3 --split valid=-1",
        "--split valid=-1: the size must not be negative",
    ),
    row(
        "generate: a split twice",
        "generate out --pairs 3 --split valid=1 --split valid=2",
        "--split valid is given twice",
    ),
    row(
        "generate: an unknown noise",
        "generate out --pairs 3 --noise loud=0.1",
        "--noise loud=0.1: unknown noise 'loud'; choose one of shuffled, inserted, truncated, language, copied",
    ),
    row(
        "generate: noise without a share",
        "generate out --pairs 3 --noise shuffled",
        "--noise needs a name and a number, such as shuffled=0.1, got 'shuffled'",
    ),
    row(
        "generate: more noise than pairs",
        "generate out --pairs 3 --noise shuffled=0.7 --noise copied=0.7",
        "--noise: the shares of noisy pairs must not exceed 1 together, got 0.7 + 0.7",
    ),
    row(
        "generate: noise that is no number",
        "generate out --pairs 3 --noise shuffled=nan",
        "--noise: the share of shuffled pairs must be from 0 to 1, got nan",
    ),
    row(
        "generate: a seed below zero",
        "generate out --pairs 3 --seed -1",
        "--seed must not be negative, got -1",
    ),
    usage("reproduce: nothing", "reproduce", "Missing argument 'NAME'"),
    row(
        "reproduce: an unknown table",
        "reproduce table7",
        "there is no 'table7' to reproduce; choose from ...",
    ),
    row(
        "reproduce: an unknown scale",
        "reproduce table1 --scale huge",
        "unknown scale 'huge'; choose one of tiny, deep, paper",
    ),
    usage(
        "reproduce: no seeds",
        "reproduce table1 --seeds 0",
        "Invalid value for '--seeds': it must be at least 1, got '0'",
    ),
    usage(
        "reproduce: no jobs",
        "reproduce table1 --jobs 0",
        "Invalid value for '--jobs': it must be at least 1, got '0'",
    ),
    row(
        "reproduce: no data",
        "reproduce table1 --data none --runs runs --results out",
        "there is no folder none/multi30k with the files of Multi30k en-de; docs/reproduction.md says where to get them, --data names the folder they are in",
    ),
    row(
        "bench: an unknown mode",
        "bench attention --quick --mode backward",
        "unknown mode 'backward'; choose one of forward, both, causal-forward, causal-both, decode",
    ),
    usage(
        "bench: a length in words",
        "bench attention --length long",
        "Invalid value for '--length': it must be a whole number, got 'long'",
    ),
    row("bench: no length", "bench attention --length 0", "length must be at least 1, got 0"),
    row(
        "bench: more zeros than weights",
        "bench attention --zeros 101",
        "zeros must be a percentage from 0 to 100, got '101'",
    ),
    row(
        "bench: zeros in words",
        "bench attention --zeros many",
        "zeros must be a percentage such as 90, or 'demo', got 'many'",
    ),
    row(
        "bench: an unknown contender",
        "bench attention --quick --contender flash",
        "unknown contender 'flash'; choose one of rela, sdpa, bmm-softmax, sparsemax, entmax15",
    ),
    row(
        "bench: an unknown dtype",
        "bench attention --quick --dtype float8",
        "unknown dtype 'float8'; choose one of float32, bfloat16",
    ),
    row("bench: no heads", "bench attention --quick --heads 0", "heads must be at least 1, got 0"),
    row("bench: no features", "bench attention --quick --dim 0", "dim must be at least 1, got 0"),
    row(
        "bench: no threads",
        "bench attention --quick --threads 0",
        "threads must be at least 1, got 0",
    ),
    row(
        "bench: a hundred thousand threads",
        "bench attention --quick --threads 100000",
        "threads must be at most ... on this machine with ... processors, got 100,000, whose stacks alone may take 781 GiB",
    ),
    row(
        "bench: an unknown backend",
        "bench attention --quick --backend cuda",
        "unknown backend 'cuda'; choose one of sdpa, native, reference",
    ),
    row(
        "bench: no rounds", "bench attention --quick --rounds 0", "rounds must be at least 1, got 0"
    ),
    row(
        "bench: no time", "bench attention --quick --seconds 0", "seconds must be above 0, got 0.0"
    ),
    row(
        "bench: an unknown preset",
        "bench attention --preset fast",
        "unknown preset 'fast'; choose one of targets, never-slower",
    ),
    row(
        "bench: two grids",
        "bench attention --quick --full",
        "--quick, --full, --preset and --tune exclude each other; give one of them",
    ),
    usage("bench: an unknown benchmark", "bench norms", "No such command 'norms'."),
    usage("doctor: an unknown option", "doctor --yaml", "No such option: --yaml"),
    usage("doctor: an argument", "doctor model", "Got unexpected extra argument(s) (model)"),
)
