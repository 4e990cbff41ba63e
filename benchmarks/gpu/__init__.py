"""What benchmarks/gpu.sh runs; METHOD.md says how it measures."""
