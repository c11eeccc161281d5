//go:build !linux && !darwin

package hook

// look finds no process here. So only its conversation identifies a hook.
func processOf(int) (process, bool) { return process{}, false }
