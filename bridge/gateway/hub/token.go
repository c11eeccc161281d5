//go:build !js

package hub

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// TokenFileEnv names the environment variable that says where the token file is.
const TokenFileEnv = "PAGEWIRE_TOKEN_FILE"

// TokenFile is where the token is kept, unless somebody says otherwise: what TokenFileEnv names, else pagewire/token in the
// user's configuration directory.
func TokenFile() (string, error) {
	if path := os.Getenv(TokenFileEnv); path != "" {
		return path, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("where to keep the token: %w; set %s", err, TokenFileEnv)
	}
	return filepath.Join(dir, "pagewire", "token"), nil
}

const tokenBytes = 32

var tokenShape = regexp.MustCompile(`^[A-Za-z0-9_-]{32,}$`)

// Token gives the token that the gateways of this user share: what the file at path holds, or a new one that it puts
// there (32 random bytes as base64url; the file has mode 0600, and its directory 0700 if it has to be made). With path "" the file is
// TokenFile's. Of several processes that find no file one makes it, and all get the same. A file that others can read is refused.
func Token(path string) (string, error) {
	if path == "" {
		var err error
		if path, err = TokenFile(); err != nil {
			return "", err
		}
	}
	token, err := readToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("the token's directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return readToken(path) // somebody was faster
	}
	if err != nil {
		return "", fmt.Errorf("the token file: %w", err)
	}
	random := make([]byte, tokenBytes)
	rand.Read(random) // it does not fail
	token = base64.RawURLEncoding.EncodeToString(random)
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
		return "", fmt.Errorf("the token file: %w", err)
	}
	return token, nil
}

// writingTime is how long the file may be empty: whoever has made it is about to fill it.
const writingTime = time.Second

func readToken(path string) (string, error) {
	for end := time.Now().Add(writingTime); ; time.Sleep(5 * time.Millisecond) {
		text, err := readPrivate(path)
		if err != nil {
			return "", fmt.Errorf("the token file: %w", err)
		}
		if token, whole := strings.CutSuffix(text, "\n"); whole || time.Now().After(end) {
			if token = strings.TrimSpace(token); !tokenShape.MatchString(token) {
				return "", fmt.Errorf("the token file %s holds no token: remove it, and a new one is made", path)
			}
			return token, nil
		}
	}
}

// readPrivate reads a file that nobody else may read.
func readPrivate(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no file", path)
	}
	// Windows has no such bits; there the user's configuration directory is the user's alone.
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return "", fmt.Errorf("others may read or write %s (its mode is %04o): chmod 600 %s, or remove it if it may have been read", path, mode, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	return string(text), err
}
