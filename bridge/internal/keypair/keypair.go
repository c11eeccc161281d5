// Package keypair reads a certificate and its key from files in PEM, and again when the files have
// changed: certificates are renewed every few weeks, and a server keeps its clients for as long as
// it can.
package keypair

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// A Pair is a certificate and its key.
type Pair struct {
	files [2]string // certificate and key
	log   *slog.Logger

	mu      sync.Mutex
	changed [2]time.Time // modification times at the last read
	failed  time.Time    // when that read failed; zero if it did not
	last    *tls.Certificate
}

// Open reads a pair. It fails if the files have no pair.
func Open(cert, key string, log *slog.Logger) (*Pair, error) {
	p := &Pair{files: [2]string{cert, key}, log: log}
	return p, p.read()
}

// retryAfter is the pause after a failed read of files that do not change: they may have got their
// right owner since, which changes no modification time, or the process may have had no descriptor
// left.
const retryAfter = 10 * time.Second

// read is called with the lock held. If it fails, the last pair stays: one of the files may not be
// renewed yet.
func (p *Pair) read() error {
	var changed [2]time.Time
	for i, file := range p.files {
		if info, err := os.Stat(file); err == nil {
			changed[i] = info.ModTime()
		}
	}
	if p.last != nil && changed == p.changed &&
		(p.failed.IsZero() || time.Since(p.failed) < retryAfter) {
		return nil
	}
	p.changed, p.failed = changed, time.Now()
	pair, err := tls.LoadX509KeyPair(p.files[0], p.files[1])
	if err == nil {
		p.last, p.failed = &pair, time.Time{}
	}
	return err
}

// get checks the files at each handshake.
func (p *Pair) get() (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.read(); err != nil {
		p.log.Warn("a certificate has changed and cannot be read: the last one stays", "file",
			p.files[0], "error", err)
	}
	return p.last, nil
}

// Config returns a configuration for either end of a connection.
func (p *Pair) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return p.get()
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return p.get()
		},
	}
}
