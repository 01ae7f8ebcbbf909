"""The shared words: kinds as frozen models, quantities, reasons, decisions. Must not know: any I/O."""
