const { SHOP: baseURL, CHROMIUM: executablePath } = process.env;
export default {
  testMatch: "*.spec.js",
  reporter: "list",
  use: { baseURL, launchOptions: { executablePath, args: ["--no-sandbox"] } },
};
