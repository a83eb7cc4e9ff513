"""lockstep in the frameworks that people train with, one line each (docs/frameworks.md): lockstep.integrations.transformers, .lightning,
.accelerate, .ray, .deepspeed, and .trackers for what they found. Each is imported only by name, and needs its framework then."""
