/** The host names of this machine, as URLs have them. */
export const loopback = /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/;
