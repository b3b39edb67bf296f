//! Placeholder while the workspace takes shape.
