"""The function through which every call enters C++: what it refuses, and the tensors it makes.

It is called directly here, without `relakit.attention` around it.
"""

import ctypes
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_states import OTHER_PLACES, OTHER_TENSORS, TRANSFORMS

from relakit.ops.native import extension
from relakit.ops.native.attention import Options
from relakit.ops.native.connection import connected_extension, connection_parts

native = connected_extension()
if native is None:
    pytest.skip("no C++ extension that can read this torch's tensors", allow_module_level=True)

PLAIN = {"is_causal": False, "scale": None, "threshold": 0.0, "power": 1.0, "dropout": 0.0}


def tensors(dtype: torch.dtype = torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 3, 4, 8), (2, 3, 6, 8), (2, 3, 6, 8))
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def forward(
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    backend: Any = None,
    weights: Any = False,
    statistics: Any = False,
    grouped: bool = False,
    **options: Any,
) -> Any:
    given = {**PLAIN, **options}
    return native.attention(
        query,
        key,
        value,
        mask,
        given["dropout"],
        given["is_causal"],
        given["scale"],
        grouped,
        given["threshold"],
        given["power"],
        weights,
        statistics,
        backend,
        None,
        given.get("reach"),
    )


def backward(inputs: list[Any], grad: Any, mask: Any = None, bits: Any = None) -> Any:
    """Gradients of query, key and value."""
    options = Options(False, 8**-0.5, 1, 0.0, 0)
    with torch.no_grad():
        result = native.attention_backward(
            grad, None, None, bits, options, mask, 0.0, None, None, tuple(inputs), False, False
        )
    return None if result is None else result[7:]


STARTS = torch.tensor([0, 1, 4]), torch.tensor([0, 5, 6])
REACHES = {
    "no tuple": 5,
    "too short": (1, 1, False),
    "distance": (1.5, 1, False, None, None),
    "one of two": (1, 1, False, STARTS[0], None),
    "dtype": (1, 1, False, STARTS[0].int(), STARTS[1].int()),
    "counts": (1, 1, False, STARTS[0], torch.tensor([0, 6])),
    "beyond the end": (1, 1, False, torch.tensor([0, 1, 5]), STARTS[1]),
    "not up to the end": (1, 1, False, STARTS[0], torch.tensor([0, 2, 5])),
    "descending": (1, 1, False, torch.tensor([0, 5, 4]), STARTS[1]),
    "negative": (1, 1, False, torch.tensor([-3, 1, 4]), STARTS[1]),
    "none at all": (1, 1, False, STARTS[0][:0], STARTS[1][:0]),
    "matrix": (1, 1, False, STARTS[0][None], STARTS[1][None]),
}


@pytest.mark.parametrize("case", REACHES)
def test_refuses_a_reach_that_would_lead_astray(case: str) -> None:
    assert forward(*tensors(), reach=REACHES[case]) is None


def test_a_reach_has_causality_in_it() -> None:
    assert forward(*tensors(), reach=(1, 1, False, *STARTS)) is not None
    assert forward(*tensors(), reach=(1, 1, False, *STARTS), is_causal=True) is None


@pytest.mark.parametrize("place", OTHER_PLACES)
def test_refuses_inside_of(place: str) -> None:
    inputs = tensors()
    grad = torch.ones(2, 3, 4, 8)
    with OTHER_PLACES[place]():
        assert forward(*inputs) is None
        assert backward(inputs, grad) is None
    assert forward(*inputs) is not None
    assert backward(inputs, grad) is not None


@pytest.mark.parametrize("kind", OTHER_TENSORS)
def test_refuses_a_tensor_that_is(kind: str) -> None:
    for position in range(3):
        inputs = tensors()
        inputs[position] = OTHER_TENSORS[kind](inputs[position])
        assert forward(*inputs) is None
        assert backward(inputs, torch.ones(2, 3, 4, 8)) is None
    other = OTHER_TENSORS[kind](torch.ones(2, 3, 4, 6))
    assert forward(*tensors(), other) is None
    assert backward(tensors(), torch.ones(2, 3, 4, 8), other) is None
    assert backward(tensors(), OTHER_TENSORS[kind](torch.ones(2, 3, 4, 8))) is None


@pytest.mark.parametrize("name", TRANSFORMS)
def test_refuses_inside_of_transform(name: str) -> None:
    answers = []

    def ask(x: Tensor) -> Tensor:
        answers.append(forward(x, x, x))
        return x.sin().sum()

    TRANSFORMS[name](ask, torch.zeros(1, 1, 2, 4))
    assert answers
    assert all(answer is None for answer in answers)


def test_autocast_concerns_forward_only() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert forward(*tensors()) is None
        assert backward(tensors(), torch.ones(2, 3, 4, 8)) is not None


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(extension.BACKEND_VARIABLE, "reference")
    assert forward(*tensors()) is None
    assert forward(*tensors(), backend="native") is not None
    assert forward(*tensors(), backend="reference") is None
    for name in ("native", ""):
        monkeypatch.setenv(extension.BACKEND_VARIABLE, name)
        assert forward(*tensors()) is not None
    for name in native.usable_isas():
        monkeypatch.setenv(extension.ISA_VARIABLE, name)
        assert forward(*tensors()) is not None
    monkeypatch.setenv(extension.ISA_VARIABLE, "abacus")
    assert forward(*tensors()) is None


def _without_memory(x: Tensor) -> Tensor:
    x.untyped_storage().resize_(0)
    return x


WRONG_TENSORS: dict[str, Callable[[Tensor, Tensor, Tensor], tuple[Any, ...]]] = {
    "a list": lambda q, k, v: (q, k.tolist(), v),
    "None": lambda q, k, v: (q, k, None),
    "three dimensions": lambda q, k, v: (q[0], k[0], v[0]),
    "other batch": lambda q, k, v: (q, k[:1], v[:1]),
    "other heads": lambda q, k, v: (q, k[:, :1], v[:, :1]),
    "other keys": lambda q, k, v: (q, k, v[:, :, :5]),
    "other features": lambda q, k, v: (q, k[..., :4], v),
    "float64": lambda q, k, v: (q.double(), k.double(), v.double()),
    "float16": lambda q, k, v: (q.half(), k.half(), v.half()),
    "mixed": lambda q, k, v: (q, k.bfloat16(), v),
    "not rows": lambda q, k, v: (q, k.mT.contiguous().mT, v),
    "no memory": lambda q, k, v: (q, k, _without_memory(v)),
    "many features": lambda q, k, v: tuple(nn.functional.pad(x, (0, 249)) for x in (q, k, v)),
}


@pytest.mark.parametrize("case", WRONG_TENSORS)
def test_refuses_tensors_with(case: str) -> None:
    inputs = WRONG_TENSORS[case](*tensors())
    assert forward(*inputs) is None
    if case != "other heads":  # they are queries in groups, which backward need not be told
        assert backward(list(inputs), torch.ones(2, 3, 4, 8)) is None


REFUSED_OPTIONS: dict[str, dict[str, Any]] = {
    "is_causal no bool": {"is_causal": 1},
    "scale in a tensor": {"scale": torch.tensor(1.0)},
    "too few thresholds": {"threshold": torch.zeros(2)},
    "one threshold in a tensor": {"threshold": torch.zeros(())},
    "thresholds in float64": {"threshold": torch.zeros(3).double()},
    "NaN": {"threshold": float("nan")},
    "infinity": {"threshold": float("inf")},
    "beyond float32": {"threshold": -1e39},
    "huge threshold": {"threshold": 10**400},
    "threshold as text": {"threshold": "0"},
    "power 3": {"power": 3.0},
    "power 1.5": {"power": 1.5},
    "huge power": {"power": 10**400},
    "power as text": {"power": "1"},
    "dropout below 0": {"dropout": -0.1},
    "dropout above 1": {"dropout": 1.1},
    "dropout not a number": {"dropout": float("nan")},
    "dropout as text": {"dropout": "0.1"},
    "dropout with a seed": {"dropout": (0.5, 3)},
    "unknown weights": {"weights": "coo"},
    "weights as a number": {"weights": 1},
}


@pytest.mark.parametrize("case", REFUSED_OPTIONS)
def test_refuses_options(case: str) -> None:
    state = torch.get_rng_state()
    assert forward(*tensors(), **REFUSED_OPTIONS[case]) is None
    assert torch.equal(torch.get_rng_state(), state)  # nothing was drawn for dropout
    assert forward(*tensors(), scale=0.5, threshold=-1, power=2, dropout=0.5) is not None


def test_refuses_heads_that_do_not_divide() -> None:
    query, key, value = tensors()
    assert forward(query, key[:, :1], value[:, :1], grouped=True).shape == (2, 3, 4, 8)
    assert forward(query, key[:, :2], value[:, :2], grouped=True) is None
    assert forward(query, key[:, :0], value[:, :0], grouped=True) is None


REFUSED_MASKS: dict[str, Callable[[], Tensor]] = {
    "float64": lambda: torch.zeros(4, 6, dtype=torch.float64),
    "integers": lambda: torch.ones(4, 6, dtype=torch.int64),
    "bytes": lambda: torch.ones(4, 6, dtype=torch.uint8),
    "narrower than the query": lambda: torch.zeros(4, 6, dtype=torch.bfloat16),
    "learned": lambda: torch.zeros(4, 6, requires_grad=True),
    "five dimensions": lambda: torch.zeros(1, 1, 1, 4, 6),
    "too few keys": lambda: torch.zeros(4, 5),
    "too many heads": lambda: torch.zeros(6, 4, 6),
}


@pytest.mark.parametrize("case", REFUSED_MASKS)
def test_refuses_a_mask_with(case: str) -> None:
    assert forward(*tensors(), REFUSED_MASKS[case]()) is None


def test_a_mask_and_causality_do_not_go_together() -> None:
    assert forward(*tensors(), torch.zeros(4, 6), is_causal=True) is None
    assert forward(*tensors(), is_causal=True) is not None


class TestTheOutput:
    def test_is_an_ordinary_tensor(self) -> None:
        output = forward(*tensors())
        assert type(output) is Tensor
        assert output.is_leaf
        assert not output.requires_grad
        assert not output.is_inference()
        assert output._version == 0
        output.mul_(2)
        output.resize_(3, 5, 7, 11)
        with torch.inference_mode():
            assert forward(*tensors()).is_inference()

    def test_has_heads_inside_where_the_query_has_them(self) -> None:
        for features in (8, 5):
            q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors())
            v = v[..., :features]
            assert forward(q, k, v).transpose(1, 2).is_contiguous()
            assert forward(q.contiguous(), k, v).is_contiguous()

    def test_goes_with_its_memory(self) -> None:
        inputs = tensors()
        forward(*inputs)
        output = forward(*inputs)
        gone = weakref.ref(output.untyped_storage())
        del output
        gc.collect()
        assert gone() is None


class TestRecordedCalls:
    def leaves(self) -> list[Tensor]:
        return [x.requires_grad_() for x in tensors()]

    def kept_bits(self, output: Tensor) -> Any:
        """What forward kept for backward: bytes, a tensor or None."""
        saved = output.grad_fn.saved_tensors
        return output.grad_fn.call[3] if saved[6] is None else saved[6]

    def test_each_input_may_want_a_gradient(self) -> None:
        for position in range(3):
            inputs = tensors()
            inputs[position] = nn.Parameter(inputs[position])
            assert forward(*inputs).requires_grad
            with torch.no_grad():
                assert not forward(*inputs).requires_grad
        threshold = torch.zeros(3, requires_grad=True)
        assert forward(*tensors(), threshold=threshold).requires_grad

    def test_bits_say_which_scores_are_positive(self) -> None:
        q, k, v = self.leaves()
        bits = self.kept_bits(forward(q, k, v))
        words = torch.frombuffer(bytearray(bits), dtype=torch.int64).view(2, 3, 4, 1)
        assert torch.equal((words >> torch.arange(6)) & 1, ((q @ k.mT) > 0).long())

    def test_many_bits_are_in_a_tensor(self) -> None:
        x = torch.randn(1, 2, 500, 8, requires_grad=True)
        bits = self.kept_bits(forward(x, x, x))
        assert bits.shape == (1, 2, 500, 8)
        assert bits.dtype == torch.int64
        grads = backward([x, x, x], torch.ones_like(x), bits=bits)
        for grad, again in zip(grads, backward([x, x, x], torch.ones_like(x)), strict=True):
            torch.testing.assert_close(grad, again)

    def test_more_bits_than_numbers_are_not_kept(self) -> None:
        x = torch.randn(1, 1, 3000, 1, requires_grad=True)
        assert self.kept_bits(forward(x, x, x)) is None

    def test_bits_of_another_call_are_refused(self) -> None:
        inputs, grad = tensors(), torch.ones(2, 3, 4, 8)
        right = torch.zeros(2, 3, 4, 1, dtype=torch.int64)
        assert backward(inputs, grad, bits=right) is not None
        for wrong in (right[:1], right.int(), right.expand(2, 3, 4, 2)):
            assert backward(inputs, grad, bits=wrong) is None
        apart = torch.zeros(2, 3, 4, 4, dtype=torch.int64)[..., ::4]
        assert backward(inputs, grad, bits=apart) is None
        assert backward(inputs, grad, bits=bytes(2 * 3 * 4 * 8)) is not None
        assert backward(inputs, grad, bits=bytes(8)) is None

    def test_gradients_are_contiguous_and_fit(self) -> None:
        inputs = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors()]
        grads = backward(inputs, torch.ones(2, 3, 4, 8))
        for x, grad in zip(inputs, grads, strict=True):
            assert type(grad) is Tensor
            assert grad.shape == x.shape
            assert grad.is_contiguous()

    def test_refuses_to_be_differentiated_twice(self) -> None:
        options = Options(False, 1.0, 1, 0.0, 0)
        assert torch.is_grad_enabled()
        assert (
            native.attention_backward(
                torch.ones(2, 3, 4, 8),
                *(None, None, None),
                options,
                *(None, 0.0, None, None),
                tuple(tensors()),
                *(False, False),
            )
            is None
        )

    def test_refuses_another_gradient(self) -> None:
        for wrong in (torch.ones(2, 3, 4, 7), torch.ones(4, 8), torch.ones(2, 3, 4, 8).double(), 1):
            assert backward(tensors(), wrong) is None

    def test_statistics_are_wanted_by_anything_true(self) -> None:
        for wanted in (True, 1, "yes"):
            assert forward(*tensors(), statistics=wanted)[2] is not None
        for unwanted in (False, 0, None):
            assert isinstance(forward(*tensors(), statistics=unwanted), Tensor)

    def test_sparse_weights_are_refused(self) -> None:
        assert forward(*tensors(), weights="csr") is not None
        assert forward(*self.leaves(), weights="csr") is None


class _Header(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
    )


class TestVersionsOfTheInterface:
    def capsule(self, header: _Header) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(header), b"dlpack_exchange_api", None)

    def connect(self, exchange: Any) -> bool:
        return native.connect({**connection_parts(), "exchange": exchange})

    def test_another_one_is_not_used(self) -> None:
        for major in (0, 2):
            header = _Header(major, 0, None)
            assert not self.connect(self.capsule(header))
        assert forward(*tensors()) is not None  # as before

    def test_an_older_one_behind_a_newer_one_is(self) -> None:
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype = ctypes.c_void_p
        get.argtypes = (ctypes.py_object, ctypes.c_char_p)
        known = get(Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
        header = _Header(2, 0, known)
        assert self.connect(self.capsule(header))
        assert forward(*tensors()) is not None

    def test_what_is_no_capsule(self) -> None:
        assert not self.connect(None)
        assert not self.connect(1)
        with pytest.raises(KeyError):
            native.connect({})


def test_projections_without_features_are_not_read() -> None:
    query, key = torch.zeros(1, 3, 0), torch.zeros(1, 3, 4)
    options = (None, 0.0, False, 0.0, 1, False, None, None, None, 0.0, None)
    assert native.multihead_attention((query, key, key), 1, 1, *options) is None
