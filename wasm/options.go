//go:build js && wasm

package main

import (
	"github.com/hack-pad/safejs"

	"github.com/pagewire/pagewire/bridge"
)

// init starts the engine with the options that the loader has put into the global object. That
// object is private: js/build wraps wasm_exec.js for that, and js/core/tinygo.ts has no other. Only
// this function reads values of JavaScript, and safejs turns their exceptions into errors.
func init() {
	options, err := safejs.Global().Get("pagewireOptions")
	if err != nil {
		report("core not started: " + err.Error())
		died = true
		return
	}
	text := func(name string) string {
		v, err := options.Get(name)
		if err != nil || v.Type() != safejs.TypeString {
			return ""
		}
		s, _ := v.String()
		return s
	}
	o := bridge.Options{
		Name:    text("name"),
		Version: text("version"),
		Rule:    bridge.Rule{Origin: text("origin")},
	}
	if v, err := options.Get("tools"); err == nil {
		o.Tools, _ = v.Truthy()
	}
	start(o)
}
