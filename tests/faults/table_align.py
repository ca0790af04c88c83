"""`relakit align` and `relakit aer`: pairs, heads, gold links, links to judge."""

import json

from fault_rows import Row, append, cut, overwrite, pipe, put, put_gzip, row, set_json, usage

ALIGN = "align model --source text.en --target text.de --output links"
GIVEN = f"{ALIGN} --layer 1"
ONE = "align model --layer 1 --source pairs --output links"
MEMORY = "align model --layer 1 --source pairs.tmx --output links"
SELECT = "align model --source text.en --target text.de --select"
AER = "aer --gold gold --hypothesis links"
LAUGHS = '<!DOCTYPE tmx [<!ENTITY ha "ha"><!ENTITY haha "&ha;&ha;&ha;&ha;">]>'
UNIT = '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>ein</seg></tuv></tu>'
TMX = f"<?xml version='1.0'?>\n{{}}<tmx><body>\n{UNIT.format('&haha;')}\n</body></tmx>\n"
CHOICE = json.dumps({"layer": 0, "heads": [0], "reading": "normal", "chosen": {"by": "given"}})
JOB = {"format": "relakit-job", "version": 1, "facts": {"command": "score"}}
PART = b'{"bytes": 2, "sha256": "x", "counts": {}}\n1\n'
TWICE = "links are read twice, which a pipe or a device does not allow; put them into a file, plain, gzip or zstd"
NO_LINK = (
    "write SOURCE-TARGET for a sure one (3-4), SOURCE?TARGET or SOURCEpTARGET for a possible one"
)

ROWS: tuple[Row, ...] = (
    usage("align: no pairs", "align model", "Missing option '--source'"),
    row("align: no such model", ALIGN.replace("model", "none", 1), "none is no model directory: there is no such folder"),
    row("align: no such target", ALIGN.replace("text.de", "none"), "none: there is no such file"),
    row(
        "align: differing numbers of lines",
        GIVEN,
        "text.en has 2 lines, text.de has 3: line n of one must be the translation of line n of the other",
        put("text.en", "the dog\na house\n"),
    ),
    row(
        "align: a byte that is not UTF-8",
        GIVEN,
        "text.en, line 3: not UTF-8 (byte 0xe4 at position 2 of the line); convert the file, for instance with iconv",
        put("text.en", b"one\ntwo\nM\xe4nner\n"),
    ),
    row(
        "align: a truncated archive",
        ONE.replace("pairs", "pairs.gz"),
        "pairs.gz is truncated: its gzip stream ends too early; get or make it again",
        put_gzip("pairs.gz", b"one ||| eins\n" * 1000, cut=9),
    ),
    row("align: blank lines alone", GIVEN, "text.de has no text: all its 3 lines are blank", put("text.de", "\n\n\n")),
    row(
        "align: a line without bars",
        ONE,
        "pairs, line 2: ||| must be there once, between source and target, not 0 times",
        put("pairs", "one ||| eins\ntwo zwei\n"),
    ),
    row(
        "align: an unknown column",
        "align model --layer 1 --source pairs.tsv --columns text,translation",
        "pairs.tsv, line 1: no column called 'text'; there are the dog, der Hund",
    ),
    row(
        "align: a billion laughs",
        MEMORY,
        "pairs.tmx, line 2: it defines the entity 'ha', which is not expanded here; write out what it stands for",
        put("pairs.tmx", TMX.format(LAUGHS)),
    ),
    row(
        "align: a memory that is cut off",
        MEMORY,
        "pairs.tmx is truncated: it ends at line 3 without </tmx>; get or make it again",
        put("pairs.tmx", TMX.format("").replace("&haha;", "one")),
        cut("pairs.tmx", 90),
    ),
    row("align: an unknown format", f"{GIVEN} --format moses", "unknown --format 'moses'; choose one of pharaoh, json, text"),
    row("align: links between letters", f"{GIVEN} --level letter", "unknown --level 'letter'; choose one of word, token"),
    row(
        "align: an unknown heuristic",
        f"{GIVEN} --symmetrize grow-diag-finale",
        "unknown --symmetrize 'grow-diag-finale'; choose one of intersection, union, grow-diag, grow-diag-final, grow-diag-final-and",
    ),
    row("align: a layer too far", f"{ALIGN} --layer 3", "model: there is no layer 3; the decoder has 1 of them, counted from 1"),
    row("align: a head too far", f"{GIVEN} --head 9", "model: there is no head 9; each layer has 2 of them, counted from 1"),
    row(
        "align: a head twice",
        f"{GIVEN} --head 1 --head 1",
        "--head must name different heads, got 1, 1",
    ),
    row("align: a reading of no layer", f"{ALIGN} --reading shifted", "--reading is one of a layer: name it with --layer"),
    row("align: an end of no layer", f"{ALIGN} --end competes", "--end is one of a layer: name it with --layer"),
    row("align: an end that wins", f"{GIVEN} --end wins", "unknown --end 'wins'; choose one of ignored, competes"),
    row(
        "align: a heuristic for one model",
        f"{GIVEN} --symmetrize union",
        "--symmetrize union is for the links of two models; name the other one with --reverse, or leave it out",
    ),
    row("align: a choice with an output", f"{SELECT} --output links", "--select aligns nothing; leave --output out, or --select"),
    row("align: a choice in a format", f"{SELECT} --format json", "--select aligns nothing; leave --format out, or --select"),
    row("align: a choice by workers", f"{SELECT} --workers 2", "--select aligns nothing; leave --workers out, or --select"),
    row("align: a choice in shards", f"{SELECT} --shard-pairs 9", "--select aligns nothing; leave --shard-pairs out, or --select"),
    row("align: a choice on a cluster", f"{SELECT} --engine ray", "--select aligns nothing; leave --engine out, or --select"),
    row("align: pairs to choose on, and no choice", f"{GIVEN} --limit 9", "--limit is about choosing heads, and --layer names them; leave one out"),
    row("align: how to read no gold links", f"{SELECT} --gold-first 1", "--gold-first is about the file of --gold; give it, too"),
    row("align: no gold links to turn round", f"{GIVEN} --gold-reverse", "--gold-reverse is about the file of --gold; give it, too"),
    row("align: a head of no layer", f"{ALIGN} --head 1", "--head is one of a layer: name it with --layer"),
    row("align: a choice of a given layer", f"{SELECT} --layer 1", "--select looks for the best layer; leave --layer out"),
    row("align: gold for nothing", f"{ALIGN} --gold gold", "--gold is for --select; relakit aer scores links against gold ones"),
    row(
        "align: gold with fewer lines",
        f"{SELECT} --gold gold",
        "gold has no links for text.en, line 3: it must have a line for each pair",
        put("gold", "0-0\n0-0\n"),
    ),
    row(
        "align: gold with more lines",
        f"{SELECT} --gold gold",
        "text.en has fewer pairs than gold has lines of links; line n of one must be about the same pair as line n of the other",
        append("gold", b"0-0\n"),
    ),
    row(
        "align: gold of words that are not there",
        f"{SELECT} --gold gold",
        "gold, line 2: the link of source word 1 and target word 7 (from 0) is out of range, the target has 2 words; check where the links' numbers start (--gold-first), which side comes first (--gold-reverse) and how words are split (--words)",
        put("gold", "0-0\n1-7\n0-0\n"),
    ),
    row(
        "align: gold of words that are not there, by sentence",
        f"{SELECT} --gold gold --gold-format naacl",
        "gold, sentence 2: the link of source word 6 and target word 0 (from 0) is out of range, the source has 2 words; ...",
        put("gold", "2 7 1 S\n"),
    ),
    row(
        "align: gold of a sentence that is not there",
        f"{SELECT} --gold gold --gold-format naacl",
        "text.en has 3 lines, gold has links of sentence 4 (from 1); give the gold links of this source",
        put("gold", "4 1 1 S\n"),
    ),
    row(
        "align: a choice of heads that is no JSON",
        ALIGN,
        "model/alignment.json is no JSON file: ...",
        put("model/alignment.json", CHOICE[:-1]),
    ),
    row(
        "align: a choice of the same head twice",
        ALIGN,
        "model/alignment.json: heads must be different and at least 0, got [1, 1]; choose again with relakit align --select",
        put("model/alignment.json", CHOICE),
        set_json("model/alignment.json", "heads", [1, 1]),
    ),
    row(
        "align: two models of one direction",
        f"{GIVEN} --reverse run/model",
        "the models must translate in opposite directions, but the source language of the first is 'en' and the target language of the second is 'de'; train the second with relakit train RECIPE --reverse",
    ),
    row(
        "align: a weight that is no number",
        GIVEN,
        ".../model computes NaN or infinity: its weights are broken, or its training has diverged; make a model of earlier checkpoints with relakit average, or train again with a lower learning rate",
        overwrite("model/model.safetensors", -4, b"\x00\x00\xc0\x7f"),
    ),
    row("align: no workers", f"{GIVEN} --workers 0", "--workers must be from 1 to ... on this machine with ... processors, got 0"),
    row("align: an unknown engine", f"{GIVEN} --engine slurm", "unknown --engine 'slurm'; choose one of processes, ray"),
    row("align: a time-out without a cluster", f"{GIVEN} --timeout 9", "--timeout 9 is for --engine ray; leave it out"),
    row(
        "align: an output that is the model",
        GIVEN.replace("links", "model/model.safetensors"),
        "--output model/model.safetensors is a part of MODEL model, which would be damaged; choose another name",
    ),
    row(
        "align: parts of scores",
        GIVEN,
        'links.parts holds finished parts of another job: relakit was not set, is "..."; command was "score", is "align"; settings/choice/format was not set, is 1; and ... more. Give the same command as then to resume, start over with --restart, or choose another --output',
        put("links.parts/job.json", json.dumps(JOB)),
        put("links.parts/000000.part", PART),
    ),
    usage("aer: no gold", "aer --hypothesis gold", "Missing option '--gold'"),
    row("aer: no such gold", "aer --gold none --hypothesis gold", "none: there is no such file"),
    row("aer: no such links", "aer --gold gold --hypothesis none", "none: there is no such file"),
    row("aer: a folder", "aer --gold corpus --hypothesis gold", "corpus is a folder; name a file"),
    row(
        "aer: gold through a pipe, in whatever format",
        "aer --gold pipe --hypothesis gold",
        f"--gold pipe is no regular file: {TWICE}, or name their format with --gold-format",
        pipe("pipe"),
    ),
    row(
        "aer: gold through a pipe for two files",
        "aer --gold pipe --gold-format pharaoh --hypothesis gold --hypothesis gold",
        f"--gold pipe is no regular file: {TWICE}",
        pipe("pipe"),
    ),
    row(
        "align: gold through a pipe, in whatever format",
        f"{SELECT} --gold pipe",
        f"--gold pipe is no regular file: {TWICE}, or name their format with --gold-format",
        pipe("pipe"),
    ),
    row("aer: links that are text", AER.replace("links", "text.en"), f"text.en, line 1: 'the' is not a link; {NO_LINK}"),
    row(
        "aer: fewer lines",
        AER,
        "gold has the links of 3 pairs, links of 1: line n of one must be about the same pair as line n of the other",
        put("links", "0-0\n"),
    ),
    row(
        "aer: gold of a sentence that is not there",
        f"{AER} --gold-format naacl",
        "links has 1 line, gold has links of sentence 2 (from 1); give the gold links of this source",
        put("gold", "2 1 1 S\n"),
        put("links", "0-0\n"),
    ),
    row(
        "aer: links from 0 read from 1",
        "aer --gold gold --hypothesis gold --hypothesis-first 1",
        "gold, line 1: '0-0' has a word below 1, the number of the first word; if the file counts from 0, say so: --gold-first 0, --links-first 0 or --hypothesis-first 0",
    ),
    row("aer: a link to a word below 0", AER, f"links, line 1: '1--2' is not a link; {NO_LINK}", put("links", "1--2\n\n\n")),
    row(
        "aer: links that are not UTF-8",
        AER,
        "links, line 1: not UTF-8 (byte 0xff at position 1 of the line); convert the file, for instance with iconv",
        put("links", b"\xff0-0\n\n\n"),
    ),
    row("aer: links in UTF-16", AER, "links is text in UTF-16; give UTF-8 text, plain, gzip or zstd", put("links", "0-0\n".encode("utf-16"))),
    row(
        "aer: truncated links",
        AER.replace("links", "links.gz"),
        "links.gz is truncated: its gzip stream ends too early; get or make it again",
        put_gzip("links.gz", b"0-0 1-1\n" * 3, cut=8),
    ),
    row(
        "aer: gold without a sure link",
        "aer --gold gold --hypothesis gold",
        "gold has no sure link in 2 pairs: nothing can be scored",
        put("gold", "0?0\n\n"),
    ),
    row("aer: an unknown format", f"{AER} --gold-format giza", "unknown format 'giza'; choose one of auto, pharaoh, naacl, talp"),
    usage("aer: words from 2", f"{AER} --gold-first 2", "Invalid value for '--gold-first'"),
    usage("aer: no samples", f"{AER} --samples 0", "Invalid value for '--samples'"),
)  # fmt: skip
