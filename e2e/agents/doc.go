// Package agents runs real agent programs, as their makers publish them, with the gateway and a
// scripted model on loopback. The tests look at the bodies of the programs' requests to the model:
// a model knows only these.
//
// Each program runs in a clean environment with its own home and a made-up key. It reaches no other
// machine. The model is a script that says which tool to call: it shows what reaches a model, and
// never what a model would make of it.
package agents
