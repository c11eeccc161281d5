//go:build !js

// Package browser finds the Chromium-based browser that a person has and runs it under our own flags.
//
// It never uses a person's profile, never downloads a browser (the command in ensure may ask apt-get for one), and
// never switches off what a browser does to real pages: chromedp's default flags disable the throttling of timers
// in hidden tabs, the renderer's back-grounding and extensions, and a test of Pagewire under them proves little.
package browser
