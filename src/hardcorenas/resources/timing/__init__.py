"""Timing things side by side on a machine that is not quiet.

This folder is copied whole into bundles for devices (see `resources.targets.bundle`), so it imports
nothing but the standard library, numpy, and, in one file, onnxruntime.
"""
