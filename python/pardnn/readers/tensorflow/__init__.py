"""TensorFlow's files: graphs, MetaGraphs, SavedModels, and what its profilers write."""
