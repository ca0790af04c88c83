def compiler() -> str:
    """The compiler that built this extension, such as "GCC 12.2.0"."""

def cpu_features() -> dict[str, bool]:
    """Instruction sets by name, and whether code may use them on this machine.

    Only the sets of the architecture that the extension was built for are listed. True means that
    the processor has it and that the operating system saves its registers.
    """
