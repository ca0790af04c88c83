"""`convert_attention`: swap the attention of a model that exists."""

from torch import nn

from relakit.attention.module import MultiheadAttention
from relakit.attention.selection import Where, check_patterns, is_selected
from relakit.attention.spec import AttentionSpec, resolve_attention


def convert_attention(
    model: nn.Module,
    attention: str | AttentionSpec = "rela-g",
    where: Where = None,
) -> list[str]:
    """Replace every `torch.nn.MultiheadAttention` in the model, in place.

    Those inside `torch.nn.Transformer` and its layers are found too. The projections keep their
    weights, as the same parameter objects; the parameters that the attention adds (its norm's gain
    and gate, a learned threshold) are new, so an optimizer that exists already must be told of
    them. A module that was converted before is converted again, to the new attention.

    Args:
        model: the model that contains the modules.
        attention: a name in `relakit.ATTENTIONS` or an `AttentionSpec`.
        where: which modules: None for all; a name or a pattern such as ``"decoder.*"``, or several;
            or a function of the name and the module.

    Returns:
        The names of the replaced modules, in the model's order. Empty if there was nothing to do.

    Raises:
        ValueError: unknown attention, a pattern without a match, a model that is itself an
            attention module (use `relakit.MultiheadAttention.from_torch`), or a subclass of
            PyTorch's module with a forward of its own.
    """
    spec = resolve_attention(attention)
    if isinstance(model, nn.MultiheadAttention):
        raise ValueError(
            "the model is itself an attention module and cannot be replaced in place; use "
            "relakit.MultiheadAttention.from_torch(module, attention)"
        )
    # A module may be shared under several names: all names must get the same replacement.
    found = [
        (name, module)
        for name, module in model.named_modules(remove_duplicate=False)
        if isinstance(module, nn.MultiheadAttention)
    ]
    check_patterns(where, [name for name, _ in found])
    chosen = [(name, module) for name, module in found if is_selected(where, name, module)]
    for name, module in chosen:
        _check_convertible(name, module)
    replacements = {id(module): MultiheadAttention.from_torch(module, spec) for _, module in chosen}
    for name, module in chosen:
        parent, _, attribute = name.rpartition(".")
        setattr(model.get_submodule(parent), attribute, replacements[id(module)])
    if chosen:
        _stop_nested_tensors(model)
    return [name for name, _ in chosen]


def _check_convertible(name: str, module: nn.MultiheadAttention) -> None:
    is_known = isinstance(module, MultiheadAttention)
    if not is_known and type(module).forward is not nn.MultiheadAttention.forward:
        raise ValueError(
            f"{name} is a {type(module).__qualname__}, a subclass of torch.nn.MultiheadAttention "
            "with a forward of its own, which conversion would drop; leave it out with "
            "where=lambda name, module: ..."
        )


def _stop_nested_tensors(model: nn.Module) -> None:
    """Keep encoders with a converted layer from handing nested tensors to it.

    In eval mode `nn.TransformerEncoder` packs padded input into a nested tensor, which only its
    fused softmax layers understand. Whether it does so it asks of its first layer alone.
    """
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoder) and any(
            isinstance(part, MultiheadAttention) for part in module.modules()
        ):
            module.use_nested_tensor = False
