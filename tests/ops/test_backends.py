"""Which backend serves a call, by itself and by name, and what is logged about it."""

import logging
import sys
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

import relakit
from relakit.nn import fused
from relakit.ops import attention as ops_attention
from relakit.ops import backends
from relakit.ops.activations import ACTIVATIONS
from relakit.ops.backends import BACKENDS, choose_backend
from relakit.ops.call import AttentionCall
from relakit.ops.native import connection, extension

VARIABLE = backends.BACKEND_VARIABLE

needs_extension = pytest.mark.skipif(
    bool(extension.why_unavailable()), reason="the C++ extension is not there"
)


@pytest.fixture(autouse=True)
def _nothing_set_and_nothing_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv(extension.ISA_VARIABLE, raising=False)
    monkeypatch.setattr(backends, "_logged", set())


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="relakit")
    return caplog


def take_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose a backend in every call, also in those that usually go to the kernels directly."""
    monkeypatch.setattr(ops_attention, "_in_extension", lambda *_: None)
    monkeypatch.setattr(fused, "in_one_step", lambda *_: None)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the backends that ran, in order."""
    names: list[str] = []
    for backend in BACKENDS.values():

        def run(call: AttentionCall, backend: backends.Backend = backend) -> object:
            names.append(backend.name)
            return type(backend).run(backend, call)

        monkeypatch.setattr(backend, "run", run)
    take_the_long_way(monkeypatch)
    return names


def inputs(*shape: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    return [torch.randn(shape or (2, 2, 5, 8), dtype=dtype) for _ in range(3)]


def call(dtype: torch.dtype = torch.float32, **options: object) -> AttentionCall:
    query, key, value = inputs(dtype=dtype)
    return AttentionCall(query=query, key=key, value=value, **options)


def compiled_graph() -> str:
    """What torch.compile makes of a plain call."""
    graphs = []

    def keep(graph: torch.fx.GraphModule, _: object) -> torch.fx.GraphModule:
        graphs.append(str(graph.graph))
        return graph

    torch._dynamo.reset()
    torch.compile(relakit.attention, fullgraph=True, backend=keep)(*inputs())
    return graphs[0]


PASSED_OVER = {
    "dtype": ({"dtype": torch.float64}, "it computes float32 and bfloat16, not torch.float64"),
    "power": ({"power": 1.5}, "it knows the powers 1 and 2, not 1.5"),
    "weights": (
        {"need_weights": "csr", "threshold": torch.zeros(2, requires_grad=True)},
        "it returns sparse weights only where no gradients are recorded",
    ),
    "mask": ({"attn_mask": torch.zeros(5, 5, requires_grad=True)}, "no gradient for the mask"),
}


class TestByItself:
    def test_softmax(self, served: list[str]) -> None:
        relakit.attention(*inputs(), activation="softmax")
        relakit.attention(*inputs(), activation="softmax", need_weights=True)
        assert served == ["sdpa", "reference"]

    @needs_extension
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    @pytest.mark.parametrize(
        "options", [{}, {"power": 2.0, "threshold": 0.5}, {"is_causal": True, "dropout_p": 0.1}]
    )
    def test_relu(self, dtype: torch.dtype, options: dict[str, object], served: list[str]) -> None:
        relakit.attention(*inputs(dtype=dtype), **options)
        assert served == ["native"]

    @needs_extension
    def test_autocast_decides_on_the_dtype_that_is_computed(self, served: list[str]) -> None:
        with torch.autocast("cpu", torch.bfloat16):
            relakit.attention(*inputs())
        with torch.autocast("cpu", torch.float16):
            relakit.attention(*inputs())
        assert served == ["native", "reference"]

    @needs_extension
    def test_modules(self, served: list[str]) -> None:
        x = torch.randn(2, 5, 16)
        module = relakit.MultiheadAttention(16, 2, batch_first=True)
        module(x, x, x, need_weights=False)
        module(x, x, x, need_weights=True)
        assert served == ["native", "native"]

    @needs_extension
    @pytest.mark.parametrize("activation", ["sparsemax", "entmax15"])
    def test_projections_onto_the_simplex(self, activation: str, served: list[str]) -> None:
        relakit.attention(*inputs(), activation=activation)
        relakit.attention(*inputs(dtype=torch.float64), activation=activation)
        assert served == ["native", "reference"]

    @pytest.mark.parametrize(
        "activation",
        [a for a in ACTIVATIONS if a not in ("softmax", *BACKENDS["native"].activations)],
    )
    def test_every_other_activation(self, activation: str, served: list[str]) -> None:
        relakit.attention(*inputs(), activation=activation)
        assert served == ["reference"]

    @needs_extension
    def test_transforms_and_forward_mode(self, served: list[str]) -> None:
        q, k, v = inputs()
        expected = relakit.attention(q, k, v, backend="reference")
        torch.testing.assert_close(torch.func.vmap(relakit.attention)(q, k, v), expected)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(q, torch.ones_like(q))
            tangent = forward_ad.unpack_dual(relakit.attention(dual, k, v)).tangent
        assert tangent is not None
        assert served == ["reference"] * 3

    @needs_extension
    def test_tensors_of_another_kind(self, served: list[str]) -> None:
        class Named(Tensor):
            pass

        q, k, v = inputs()
        assert isinstance(relakit.attention(q.as_subclass(Named), k, v), Named)
        relakit.attention(torch.nn.Parameter(q), k, v)
        assert served == ["reference", "native"]

    @needs_extension
    @pytest.mark.skipif(
        not hasattr(torch.compiler, "is_exporting"), reason="PyTorch 2.6 cannot tell"
    )
    def test_traced_and_exported_programs_need_no_relakit(self) -> None:
        class Attend(torch.nn.Module):
            def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
                return relakit.attention(q, k, v, is_causal=True)

        queries, keys = torch.export.Dim("queries"), torch.export.Dim("keys")
        traced = torch.jit.trace(Attend(), tuple(inputs()))
        assert "relakit::" not in str(traced.graph)
        longer = [*inputs(2, 2, 7, 8)[:1], *inputs(2, 2, 9, 8)[1:]]
        expected = relakit.attention(*longer, is_causal=True, backend="reference")
        torch.testing.assert_close(traced(*longer), expected)
        for strict in (True, False):
            exported = torch.export.export(
                Attend(),
                tuple(inputs()),
                dynamic_shapes=({2: queries}, {2: keys}, {2: keys}),
                strict=strict,
            )
            assert "relakit." not in str(exported.graph)
            # Queries and keys of one length in the example are not tied to each other.
            torch.testing.assert_close(exported.module()(*longer), expected)

    @needs_extension
    def test_compiled_programs_use_the_kernels(self) -> None:
        assert "relakit.rela" in compiled_graph()


class TestByVariable:
    def test_serves_calls_that_name_no_backend(
        self, served: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(VARIABLE, "reference")
        relakit.attention(*inputs())
        relakit.attention(*inputs(), activation="softmax")
        relakit.attention(*inputs(), activation="softmax", backend="sdpa")
        monkeypatch.setenv(VARIABLE, "")
        relakit.attention(*inputs(), activation="softmax")
        assert served == ["reference", "reference", "sdpa", "sdpa"]

    @pytest.mark.parametrize("use", ["function", "module"])
    def test_is_a_demand(self, use: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(VARIABLE, "native")
        message = (
            r"backend 'native' \(from RELAKIT_BACKEND in the environment\) cannot serve this call: "
            ".*it computes relu, sparsemax, entmax15, not 'softmax'"
        )
        x = torch.randn(2, 5, 16)
        module = relakit.MultiheadAttention(16, 2, batch_first=True, attention="softmax")
        with pytest.raises(ValueError, match=message):
            module(x, x, x) if use == "module" else relakit.attention(x, x, x, activation="softmax")

    def test_unknown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(VARIABLE, "cuda")
        message = (
            r"unknown backend 'cuda' \(from RELAKIT_BACKEND in the environment\); choose one of "
            "sdpa, native, reference, or unset the variable"
        )
        with pytest.raises(ValueError, match=message):
            relakit.attention(*inputs())
        relakit.attention(*inputs(), backend="reference")  # its own name comes first

    @needs_extension
    def test_compiled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(VARIABLE, "reference")
        assert "relakit.rela" not in compiled_graph()


@needs_extension
class TestTorchWithAnotherInterface:
    """The extension loads, but cannot read this torch's tensors."""

    MESSAGE = "it does not know the DLPack interface of torch"

    @pytest.fixture(autouse=True)
    def _not_connected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connection, "_connected", set())
        monkeypatch.setattr(connection, "_is_connected", lambda _: False)

    @pytest.mark.parametrize("need_weights", [False, True])
    def test_the_reference_serves(self, need_weights: bool, log: pytest.LogCaptureFixture) -> None:
        relakit.attention(*inputs(), need_weights=need_weights)
        (record,) = log.records
        assert record.levelno == logging.WARNING
        assert self.MESSAGE in record.getMessage()

    def test_by_name(self) -> None:
        with pytest.raises(ValueError, match=f"cannot serve this call: {self.MESSAGE}"):
            relakit.attention(*inputs(), backend="native")

    def test_an_operator(self) -> None:
        options = (None, None, None, 1.0, 1, False, 0.0, False)
        with pytest.raises(RuntimeError, match=self.MESSAGE):
            torch.ops.relakit.rela(*inputs(), *options)


class TestLog:
    @needs_extension
    @pytest.mark.parametrize("case", PASSED_OVER)
    def test_an_option_that_costs_the_kernels(
        self, case: str, log: pytest.LogCaptureFixture
    ) -> None:
        options, reason = PASSED_OVER[case]
        for _ in range(3):
            assert choose_backend(call(**options), None).name == "reference"
        (record,) = log.records
        assert record.levelno == logging.INFO
        assert record.name == "relakit.attention"
        text = record.getMessage()
        assert text.startswith("backend 'reference' serves 'relu' calls; backend 'native' does not")
        assert reason in text

    @needs_extension
    def test_distinct_reasons_are_logged_once_each(self, log: pytest.LogCaptureFixture) -> None:
        for _ in range(2):
            for power in (1.5, 3.0):
                choose_backend(call(power=power), None)
        assert len(log.records) == 2

    def test_the_number_of_messages_is_limited(self, log: pytest.LogCaptureFixture) -> None:
        for step in range(backends.MESSAGES_LOGGED + 5):
            choose_backend(call(power=2.5 + step), None)
        assert len(log.records) == backends.MESSAGES_LOGGED

    def test_what_can_be_repaired_is_a_warning(
        self, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "relakit._native", None)  # as if it was not built
        for _ in range(2):
            assert choose_backend(call(), None).name == "reference"
        (record,) = log.records
        assert record.levelno == logging.WARNING
        assert "the C++ extension is not there" in record.getMessage()

    def test_a_missing_extension_is_the_reason_where_weights_are_wanted_too(
        self, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "relakit._native", None)
        assert choose_backend(call(need_weights=True), None).name == "reference"
        (record,) = log.records
        assert record.levelno == logging.WARNING
        assert "compiled" not in record.getMessage()

    @needs_extension
    def test_an_unknown_instruction_set_is_a_warning(
        self, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert choose_backend(call(), None).name == "native"
        monkeypatch.setenv(extension.ISA_VARIABLE, "sse9")
        assert choose_backend(call(), None).name == "reference"
        (record,) = log.records
        assert record.levelno == logging.WARNING
        assert "RELAKIT_CPU_ISA='sse9' is not usable here" in record.getMessage()

    def test_no_warning_where_the_kernels_would_not_have_served(
        self, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "relakit._native", None)
        choose_backend(call(dtype=torch.float64), None)
        assert [record.levelno for record in log.records] == [logging.INFO]

    def test_nothing_to_say(self, log: pytest.LogCaptureFixture) -> None:
        choose_backend(call(activation="softmax"), None)
        choose_backend(call(activation="gelu"), None)
        choose_backend(call(), "reference")
        assert log.records == []

    @needs_extension
    def test_compiled_code_logs_when_it_is_compiled(self, log: pytest.LogCaptureFixture) -> None:
        torch._dynamo.reset()
        attend = torch.compile(relakit.attention, fullgraph=True, backend="eager")
        x = inputs(dtype=torch.float64)
        for _ in range(2):
            torch.testing.assert_close(attend(*x), relakit.attention(*x, backend="reference"))
        (record,) = [r for r in log.records if r.name == "relakit.attention"]
        assert "not torch.float64" in record.getMessage()


def test_a_mask_of_less_precision_beside_float64() -> None:
    """PyTorch's kernel gives wrong numbers for it, from 16 keys on."""
    torch.manual_seed(1)
    query, key, value = torch.randn(3, 1, 2, 20, 8, dtype=torch.float64)
    mask = torch.randn(20, 20)
    attend = partial(relakit.attention, query, key, value, activation="softmax")
    torch.testing.assert_close(attend(mask), attend(mask.double(), backend="reference"))


def test_values_may_have_more_heads_than_weights() -> None:
    torch.manual_seed(1)
    query, key, value = torch.randn(2, 1, 5, 8), torch.randn(2, 1, 6, 8), torch.randn(2, 3, 6, 4)
    expected = relakit.attention(*(x.expand(2, 3, -1, -1) for x in (query, key, value)))
    torch.testing.assert_close(relakit.attention(query, key, value), expected)


@pytest.mark.parametrize("default", [torch.bfloat16, torch.float64])
def test_division_by_length_does_not_depend_on_the_default_type(default: torch.dtype) -> None:
    x = torch.rand(1, 1, 300, 4)
    attend = partial(relakit.attention_details, x, x, x, length_exponent=1.0, statistics=True)
    expected = attend()
    torch.set_default_dtype(default)
    try:
        found = attend()
    finally:
        torch.set_default_dtype(torch.float32)
    torch.testing.assert_close(found.output, expected.output, rtol=0, atol=0)
    assert found.statistics is not None
    assert found.statistics.sums.dtype == torch.float32
