"""Derived text for the eye: both lines with their links, trees and entities, as SVG, as a page, in the terminal."""
