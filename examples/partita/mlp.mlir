func @mlp(%x : tensor<16x256xf32>, 
          %w1 : tensor<256x256xf32>, 
          %w2 : tensor<256x256xf32>){
 %0 = "matmul"(%x, %w1)
 %1 = "matmul"(%0, %w2)
 return %1
}
