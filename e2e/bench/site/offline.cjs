// Limits a program of others to this machine: loaded before it, this refuses connections, and changes nothing else.
const { Socket } = require("node:net");
const { connect } = Socket.prototype;
Socket.prototype.connect = function (...args) {
  const options = Array.isArray(args[0]) ? args[0][0] : args[0];
  const host = typeof options === "object" ? options.host : typeof args[1] === "string" ? args[1] : undefined;
  if (host && !["localhost", "127.0.0.1", "::1"].includes(host)) {
    process.nextTick(() => this.destroy(new Error("the benchmark is offline: " + host)));
    return this;
  }
  return connect.apply(this, args);
};
