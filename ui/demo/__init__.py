"""The demo: three policies on one workload, sized to the machine it runs on."""
