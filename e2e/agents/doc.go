// Package agents has real agent programs, as their makers publish them, talk to the gateway and to a scripted model on
// loopback. What counts is in the bodies of their requests to the model: that is what a model would know.
//
// Each program runs in a clean environment with a home of its own and a made-up key; nothing of it reaches another
// machine. The model is a script that says which tool to call: it shows what reaches a model, and nothing of what one
// would make of it.
package agents
