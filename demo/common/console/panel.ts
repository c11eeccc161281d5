/** The HTML of the console's section, with the places that view.ts fills. */
export function panel(byGateway: boolean): string {
  return `
    <div class="side-head">
      <h2 id="agent-heading">The agent</h2>
      <p>what it sees, through ${byGateway ? "a gateway, as a desktop agent does" : "a real MCP client"}</p>
      ${byGateway ? "" : eras}
    </div>

    <ol class="steps" id="steps" aria-label="What the agent did" aria-live="polite"></ol>
    <p class="trouble" id="trouble" role="alert" hidden>
      <span></span><button type="button" id="reconnect">Connect again</button>
    </p>

    <div class="state">
      <div>
        <h3>Resources</h3>
        <ul id="resources"></ul>
      </div>
      <div class="live">
        <h3>
          <span id="live-heading">Live value</span>
          <button type="button" id="read-again" hidden>Read again</button>
        </h3>
        <pre id="live-value" tabindex="0" role="group" aria-labelledby="live-heading"></pre>
      </div>
    </div>

    <div class="tools" hidden>
      <h3>Tools of the page</h3>
      <ul id="tools"></ul>
    </div>

    <div class="traffic">
      <div class="told">
        <h3>Notifications <span id="notification-count">0</span></h3>
        <p class="empty">Nothing yet. Change something on the page.</p>
        <ol id="notifications" aria-label="Notifications, newest first" tabindex="0"></ol>
      </div>
      <div class="wire">
        <h3>On the wire <span id="message-count">0</span></h3>
        <ol id="messages" aria-label="JSON-RPC messages, newest first" tabindex="0"></ol>
      </div>
    </div>`;
}

const era = (value: string, version: string, how: string) =>
  `<label title="${how}"><input type="radio" name="era" value="${value}"><span>${version}</span></label>`;

const eras = `
  <fieldset class="eras">
    <legend class="unseen">Protocol version</legend>
    ${era("legacy", "2025-11-25", "initialize, resources/subscribe")}
    ${era("modern", "2026-07-28", "server/discover, subscriptions/listen")}
  </fieldset>`;
