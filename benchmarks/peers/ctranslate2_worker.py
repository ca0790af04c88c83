"""CTranslate2: decoding and scoring, in float32 or int8."""

import tempfile
import time
from pathlib import Path

import ctranslate2
from batches import Decoding, decoded
from ctranslate2_model import NEVER_GENERATED, write_model
from protocol import Answer, Request, need, serve
from weights import read_weights

COMPUTE_TYPES = {"fp32": "float32", "int8": "int8"}


class Worker:
    def setup_decode(self, request: Request) -> Answer:
        precision = request.get("precision", "fp32")
        if precision not in COMPUTE_TYPES:
            raise ValueError(f"precision must be one of {list(COMPUTE_TYPES)}, not {precision!r}")
        with tempfile.TemporaryDirectory() as folder:
            write_model(read_weights(need(request, "model")), Path(folder))
            self.translator = ctranslate2.Translator(
                folder,
                device="cpu",
                compute_type=COMPUTE_TYPES[precision],
                inter_threads=1,
                intra_threads=int(request.get("threads", 1)),
            )
        version, compute_type = ctranslate2.__version__, self.translator.compute_type
        return {"ok": True, "about": f"CTranslate2 {version}, {compute_type}"}

    def decode(self, request: Request) -> Answer:
        decoding = Decoding.of_request(request)
        sources = [[str(i) for i in sentence] for sentence in decoding.sentences]
        start = time.perf_counter()
        results = self.translator.translate_batch(
            sources,
            beam_size=decoding.beam,
            max_batch_size=decoding.batch_size,
            length_penalty=decoding.length_penalty,
            max_decoding_length=decoding.max_length,
            min_decoding_length=decoding.exact_length or 1,
            max_input_length=0,
            suppress_sequences=NEVER_GENERATED,
            return_end_token=True,
        )
        seconds = time.perf_counter() - start
        return decoded(seconds, [[int(word) for word in r.hypotheses[0]] for r in results])

    def score(self, request: Request) -> Answer:
        sources, targets = (
            [[str(i) for i in sentence] for sentence in need(request, side)]
            for side in ("sources", "targets")
        )
        start = time.perf_counter()
        results = self.translator.score_batch(
            sources,
            targets,
            max_batch_size=int(need(request, "batch_tokens")),
            batch_type="tokens",
            max_input_length=0,
        )
        seconds = time.perf_counter() - start
        means = [-sum(result.log_probs) / len(result.log_probs) for result in results]
        return {"seconds": seconds, "cross_entropies": means}


def no_training(request: Request) -> Answer:
    raise ValueError("CTranslate2 does not train")


if __name__ == "__main__":
    worker = Worker()
    serve(
        {
            "setup-train": no_training,
            "train-steps": no_training,
            "setup-decode": worker.setup_decode,
            "decode": worker.decode,
            "score": worker.score,
        }
    )
