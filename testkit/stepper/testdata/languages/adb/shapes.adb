procedure Shapes is
   type Arr is array (Positive range <>) of Integer;
   Bad : exception;
   Sum : Integer := 0;
   function Make (N : Positive) return Arr is
      R : Arr (1 .. N);
   begin
      for I in R'Range loop R (I) := I * N; end loop;
      return R;
   end Make;
   function Text (N : Integer) return String is (Integer'Image (N) & "x" & Integer'Image (N + 1));
   procedure Deep (N : Integer) is
      A : constant Arr := Make (N + 3);
      procedure Nested (K : Integer) is
      begin
         Sum := Sum + A (K) + N;
         if K > 1 then Nested (K - 1); end if;
         if Sum mod 7 = 3 then raise Bad; end if;
      end Nested;
   begin
      Nested (N + 2);
      if N > 0 then Deep (N - 1); end if;
      Sum := Sum + Text (N)'Length;
   exception
      when Bad => Sum := Sum + 1;
   end Deep;
begin
   for I in 1 .. 4 loop Deep (I); end loop;
end Shapes;
