"""The pure pass. Must not know: clocks, randomness, I/O, logging, asyncio."""
