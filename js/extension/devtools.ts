// Adds the panel to the browser's DevTools. Only here is the inspected tab known in every browser.
chrome.devtools.panels.create("Pagewire", "icon-32.png", `panel.html?tab=${chrome.devtools.inspectedWindow.tabId}`);
