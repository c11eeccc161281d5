//go:build !js && !linux && !darwin

package hook

// look knows no process: hooks are known by what their program calls the conversation.
func look(int) (process, bool) { return process{}, false }
