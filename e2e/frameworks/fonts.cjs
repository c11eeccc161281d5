// What next/font/google gets instead of Google's answers (NEXT_FONT_GOOGLE_MOCKED_RESPONSES): create-next-app's template
// asks for two fonts, and without a network its build fails.
const face = (family) =>
  `@font-face { font-family: "${family}"; font-style: normal; font-weight: 100 900; src: local("Arial"); }`;

module.exports = {
  "https://fonts.googleapis.com/css2?family=Geist:wght@100..900&display=swap": face("Geist"),
  "https://fonts.googleapis.com/css2?family=Geist+Mono:wght@100..900&display=swap": face("Geist Mono"),
};
