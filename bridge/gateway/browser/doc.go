// Package browser finds the user's Chromium-based browser and runs it under our own flags.
//
// It never uses a person's profile, never downloads a browser (the command in ensure may ask apt-get for one), and
// keeps a browser's normal behaviour: chromedp's default flags disable the throttling of timers in hidden tabs, the
// renderer's back-grounding and extensions, and a test of Pagewire under them proves little.
package browser
