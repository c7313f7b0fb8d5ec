"""Hive's Initiator as a sensor."""
