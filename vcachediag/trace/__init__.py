"""What happened, recorded once: records, writer and reader of a trace folder."""
