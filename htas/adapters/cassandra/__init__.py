"""The shared store: Apache Cassandra."""
