// The floor of a wire: the page returns what it gets.
self.reply = (text, send) => send(text);
