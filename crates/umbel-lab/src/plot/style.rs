//! Colours of plots, on light and on dark backgrounds.

/// Colours that can be distinguished with any colour vision (Okabe and Ito), lighter on a dark
/// background; `s0` strokes and `f0` fills with the first colour. Follows the reader's system
/// theme.
pub(crate) const STYLE: &str = "\
.plot{fill:#222}.plot .paper{fill:#fff}.plot .grid{stroke:#e4e4e4}.plot .axis{stroke:#888}
.plot .s0{stroke:#0072b2}.plot .s1{stroke:#d55e00}.plot .s2{stroke:#009e73}.plot .s3{stroke:#cc79a7}
.plot .s4{stroke:#e69f00}.plot .s5{stroke:#56b4e9}.plot .s6{stroke:#555}
.plot .f0{fill:#0072b2}.plot .f1{fill:#d55e00}.plot .f2{fill:#009e73}.plot .f3{fill:#cc79a7}
.plot .f4{fill:#e69f00}.plot .f5{fill:#56b4e9}.plot .f6{fill:#555}
@media screen and (prefers-color-scheme:dark){
.plot{fill:#d8dbde}.plot .paper{fill:#1b1f23}.plot .grid{stroke:#30363c}.plot .axis{stroke:#8a9097}
.plot .s0{stroke:#4aa8e0}.plot .s1{stroke:#f0803c}.plot .s2{stroke:#2fc79a}.plot .s3{stroke:#e0a0c4}
.plot .s4{stroke:#f0b840}.plot .s5{stroke:#8fd0f5}.plot .s6{stroke:#b0b5ba}
.plot .f0{fill:#4aa8e0}.plot .f1{fill:#f0803c}.plot .f2{fill:#2fc79a}.plot .f3{fill:#e0a0c4}
.plot .f4{fill:#f0b840}.plot .f5{fill:#8fd0f5}.plot .f6{fill:#b0b5ba}}
";

/// Colour of what belongs to no series.
pub(super) const GREY: usize = 6;

/// Number of colours.
pub(super) const COLOURS: usize = 7;
