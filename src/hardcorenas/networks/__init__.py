"""From an architecture to one plain network, its shapes and what they cost by arithmetic.

``layout`` needs no torch; ``build``, ``blocks`` and ``timm_bridge`` do. Import the module you need.
"""
