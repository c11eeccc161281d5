package access

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pagewire/pagewire/bridge/gateway/internal/secret"
)

// TokenFileEnv is the environment variable with the path of the token file.
const TokenFileEnv = "PAGEWIRE_TOKEN_FILE"

// TokenFile is the path of the token: the value of TokenFileEnv, or else pagewire/token in the user's configuration
// directory.
func TokenFile() (string, error) {
	if path := os.Getenv(TokenFileEnv); path != "" {
		return path, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the token: %w; set %s", err, TokenFileEnv)
	}
	return filepath.Join(dir, "pagewire", "token"), nil
}

// Token returns the token that the gateways of this user share. It reads the file at path; "" is TokenFile's. If there
// is no file, it makes one with a new token: 32 random bytes as base64url, in a file of mode 0600 (and a directory of
// mode 0700, if it must make that). If several processes find no file, one of them makes it, and all get the same
// token. It refuses, in one sentence, a file that is empty, half written, a link, not regular, another user's, or
// readable by others, and leaves it as it is.
func Token(path string) (string, error) {
	if path == "" {
		var err error
		if path, err = TokenFile(); err != nil {
			return "", err
		}
	}
	token, err := secret.Make(path)
	if err != nil {
		return "", fmt.Errorf("the token file: %w", err)
	}
	return token, nil
}
