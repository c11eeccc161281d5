// A bare WebSocket. What the page answers is in the script before this one.
const socket = new WebSocket("ws://" + location.host + "/socket");
socket.onopen = () => socket.send(state);
socket.onmessage = ({ data }) => reply(data, (text) => socket.send(text));
