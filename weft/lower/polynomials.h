// Coefficients of polynomials and digits of 1/(2 pi); printed by tools/minimax, which says how they
// are found.
#pragma once
#include "weft/lower/legaliser.h"

namespace weft::lower {

/// c[0] + c[1]*x + ... by Horner's rule.
Expr polynomial(Expr x, std::span<const double> coefficients);

// clang-format off
// (2^f - 1 - f*log 2)/f^2 on [-1/2, 1/2]; error 2^-30.7
inline constexpr double kExp2F32[] = {0x1.ebfbe0p-3, 0x1.c6b06ep-5, 0x1.3b2a56p-7, 0x1.5db570p-10, 0x1.441024p-13, 0x1.c2f846p-17};
// (2^f - 1 - f*log 2)/f^2 on [-1/2, 1/2]; error 2^-57.5
inline constexpr double kExp2F64[] = {0x1.ebfbdff82c58fp-3, 0x1.c6b08d704a0c9p-5, 0x1.3b2ab6fba4d19p-7, 0x1.5d87fe78a32acp-10, 0x1.430912f8d7945p-13, 0x1.ffcbfc7230e9ap-17, 0x1.62c0207cbba07p-20, 0x1.b524e1968e663p-24, 0x1.e4d5cd06cd3b8p-28, 0x1.e9fd65aac2398p-32, 0x1.bb028026bdce8p-36};
// (log2(1 + f) - f*log2(e))/f^2, 1 + f from sqrt(1/2) to sqrt(2); error 2^-27.8
inline constexpr double kLog2F32[] = {-0x1.715476p-1, 0x1.ec708cp-2, -0x1.715466p-2, 0x1.277e3ep-2, -0x1.ec8406p-3, 0x1.a43d42p-3, -0x1.6dfe1ep-3, 0x1.5e0594p-3, -0x1.5ba1d0p-3, 0x1.9a3978p-4};
// (log((1+s)/(1-s))/s - 2)/z in z = s^2; error 2^-35.2
inline constexpr double kLogF32[] = {0x1.555554p-1, 0x1.999c26p-2, 0x1.23d3e0p-2, 0x1.f13b22p-3};
// (log((1+s)/(1-s))/s - 2)/z in z = s^2; error 2^-66.6
inline constexpr double kLogF64[] = {0x1.5555555555555p-1, 0x1.9999999999d11p-2, 0x1.24924924397f9p-2, 0x1.c71c724b66c36p-3, 0x1.745ce1c8dd3a7p-3, 0x1.3b20247b1a5aep-3, 0x1.0f6744dadf0a7p-3, 0x1.0f0dcba5aac6cp-3};
// (sin(r)/r - 1)/z in z = r^2, |r| <= pi/2; error 2^-35.6
inline constexpr double kSinHalfTurn[] = {-0x1.55555549583c4p-3, 0x1.11110cc1117e7p-7, -0x1.a017fd79af6a0p-13, 0x1.7174c55cac6c5p-19, -0x1.9ac28a198ca57p-26};
// cos(r)/(pi^2/4 - z) in z = r^2, |r| <= pi/2; error 2^-38.1
inline constexpr double kCosHalfTurn[] = {0x1.9f02f62226753p-2, -0x1.3a76a46c49a37p-5, 0x1.5c7a7f9734f5cp-10, -0x1.94e63596ca70ap-16, 0x1.22302f61ad7cbp-22, -0x1.0fa347b02b485p-29};
// (sin(r)/r - 1)/z in z = r^2; error 2^-37.6
inline constexpr double kSinF32[] = {-0x1.5555554cb90fcp-3, 0x1.11110895ab547p-7, -0x1.a00f9d240f369p-13, 0x1.6cd838f241e11p-19};
// (cos(r) - 1 + z/2)/z^2 in z = r^2; error 2^-33.3
inline constexpr double kCosF32[] = {0x1.55554ab26282fp-5, -0x1.6c0c8aaee0422p-10, 0x1.9a020a738aa6bp-16};
// (tan(r)/r - 1)/z in z = r^2; error 2^-29.4
inline constexpr double kTanF32[] = {0x1.5555618091a55p-2, 0x1.110d44f300d3ap-3, 0x1.bae7e09fee6d2p-5, 0x1.5c3b7166f2f0ap-6, 0x1.654c5a3cd508bp-7, 0x1.f9fcd44aa50f3p-18, 0x1.2155792a2deebp-8};
// (tan(r)/r - 1)/z in z = r^2, of f32; error 2^-29.1
inline constexpr double kTanQuarterF32[] = {0x1.555564p-2, 0x1.110c98p-3, 0x1.bb06b4p-5, 0x1.5afad6p-6, 0x1.6bd668p-7, -0x1.033eb8p-12, 0x1.29a058p-8};
// (sin(r)/r - 1)/z in z = r^2; error 2^-63.3
inline constexpr double kSinF64[] = {-0x1.5555555555555p-3, 0x1.1111111111067p-7, -0x1.a01a019ffdba1p-13, 0x1.71de3a32a90d4p-19, -0x1.ae642ad577568p-26, 0x1.6108b340d11bap-33, -0x1.9f709ec36788bp-41};
// (cos(r) - 1 + z/2)/z^2 in z = r^2; error 2^-64.2
inline constexpr double kCosF64[] = {0x1.555555555554cp-5, -0x1.6c16c16c1521dp-10, 0x1.a01a019cbf0d5p-16, -0x1.27e4f812654d1p-22, 0x1.1ee9f110a8f37p-29, -0x1.8fb10a29315c4p-37};
// 1/(2 pi), most significant bits first
inline constexpr uint64_t kTurns[] = {0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770, 0x36d8a566, 0x4f10e410, 0x7f9458ea, 0xf7aef158, 0x6dc91b8e, 0x909374b8, 0x1924bba, 0x82746487, 0x3f877ac7, 0x2c4a69cf, 0xba208d7d, 0x4baed121, 0x3a671c09, 0xad17df90, 0x4e64758e, 0x60d4ce7d, 0x272117e2, 0xef7e4a0e, 0xc7fe25ff, 0xf7816603, 0xfbcbc462, 0xd6829b47, 0xdb4d9fb3, 0xc9f2c26d, 0xd3d18fd9, 0xa797fa8b, 0x5d49eeb1, 0xfaf97c5e, 0xcf41ce7d, 0xe294a4ba, 0x9afed7ec, 0x47e35742, 0x1580cc11, 0xbf1edaea, 0xfc33ef08, 0x26bd0d87};
// clang-format on

}  // namespace weft::lower
