"""Random histories of one full-ACID table, played on a real directory against a simple model of the metastore.

``steps`` says what may happen, ``generated`` how often; ``metastore`` and ``truth`` know what every snapshot must read;
``hive_files``, ``streaming``, ``writer`` and ``soft_deletes`` do what Hive would, and so does ``hive_compactor``, with
what ``contents`` sees; ``server`` answers the product's own client, and ``looks`` lets others act between two of its
looks; ``compactor`` and ``cleaner`` drive the product, from recovery and snapshot to publication and cleaning;
``published`` and ``readings`` judge what is there; ``player`` plays one history, ``many`` plays many.
"""
