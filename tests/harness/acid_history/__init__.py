"""Random histories of one full-ACID partition, played on a real directory against a simple model of the table.

``steps`` says what may happen; ``metastore`` and ``truth`` know what every snapshot must read; ``hive_files``,
``streaming`` and ``writer`` lay down files as Hive would; ``compactor`` and ``cleaner`` drive the product's own
planning, merging and cleaning rules; ``published`` and ``readings`` judge what is there; ``player`` plays a history.
"""
