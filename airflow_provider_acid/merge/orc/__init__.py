"""ORC as bytes: tails, footers, statistics, schemas, codecs."""
