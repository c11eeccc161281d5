package clientconfig

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
)

// Places are the values that paths depend on.
type Places struct {
	GOOS, Home string
	Env        func(string) string
}

// Here returns the places of this process.
func Here() (Places, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		err = cli.Hint(err, "set it to your home directory, and try again")
	}
	return Places{runtime.GOOS, absolute(home), os.Getenv}, err
}

// Config returns the directory with the settings of the user's programs.
func (p Places) Config() string {
	switch p.GOOS {
	case "windows":
		if dir := p.Env("APPDATA"); dir != "" {
			return dir
		}
		return filepath.Join(p.Home, "AppData", "Roaming")
	case "darwin":
		return filepath.Join(p.Home, "Library", "Application Support")
	}
	return p.XDG()
}

// XDG returns the directory with the settings of programs that follow the XDG rules.
func (p Places) XDG() string {
	if dir := p.Env("XDG_CONFIG_HOME"); filepath.IsAbs(dir) { // its rules: ignore a relative path
		return dir
	}
	return filepath.Join(p.Home, ".config")
}

// or returns the directory that an environment variable names, or, without it, one below the home
// directory.
func (p Places) or(variable, below string) string {
	if dir := p.Env(variable); dir != "" {
		return absolute(dir)
	}
	return filepath.Join(p.Home, below)
}

// absolute makes a path independent of the working directory, since it is printed.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil && path != "" {
		return abs
	}
	return path
}

func homeDir(p Places) string     { return p.Home }
func claudeDir(p Places) string   { return p.or("CLAUDE_CONFIG_DIR", ".claude") }
func codexDir(p Places) string    { return p.or("CODEX_HOME", ".codex") }
func copilotDir(p Places) string  { return p.or("COPILOT_HOME", ".copilot") }
func opencodeDir(p Places) string { return filepath.Join(p.XDG(), "opencode") }

func zedDir(p Places) string {
	if p.GOOS == "windows" {
		return filepath.Join(p.Config(), "Zed")
	}
	return filepath.Join(p.XDG(), "zed")
}

var (
	geminiSettings = in(homeDir, ".gemini", "settings.json")
	qwenSettings   = in(homeDir, ".qwen", "settings.json")
)

func in(dir func(Places) string, name ...string) func(Places) string {
	return func(p Places) string { return filepath.Join(append([]string{dir(p)}, name...)...) }
}
