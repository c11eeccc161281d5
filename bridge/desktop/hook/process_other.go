//go:build !linux && !darwin

package hook

// look finds no process here. So only its conversation identifies a hook.
func look(int) (process, bool) { return process{}, false }
